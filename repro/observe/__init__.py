"""The observer: loaded into the user's training process.

It writes a line per optimizer step, and changes no bit. README.md beside this file says how.

hooks               the hooks into `import`, which install the watchers
pytorch, jax, keras  the watchers: steps of each framework's optimizers
keras_steps, keras_fit  the lines of Keras' steps; what `fit` shows
operations          all operations of one step, in PyTorch
pytorch_calls       calls of PyTorch's modules in the steps that --modules names
keras_calls         calls of Keras' layers in these steps
doubles, tensorflow_doubles  the same step in float64, of PyTorch and of TensorFlow
without_double      operations of PyTorch that have no float64 form, computed by others
dispatch            the mode that PyTorch asks before each operation
watch               repro.watch, for loops that no hook sees
watched             the steps that it reports
by_hand             updates by hand in PyTorch
calls, jax_lines    updates by hand in JAX: calls that carry weights on, and their lines
compiled, traces    compiled functions of JAX: as they are called, and traced
trees               trees of JAX, and the parts of a result that come back as arguments
nnx_calls, equinox_calls  updates by hand in Flax NNX and in Equinox
estimators          steps of scikit-learn
boosting            steps of XGBoost and LightGBM
metrics             numbers that the program hands to a library that logs
windows             waits between two backward passes
states              one hash of all that an object holds
tf_data             batches that tf.data hands out to a loop
batches             batches of PyTorch's loaders, or what modules are called with
graphs              the batch that a function of TensorFlow is given while it is traced
entries             functions that a PyTorch program comes to call
scalars             numbers that a step of PyTorch depends on
optimizers          one optimizer of PyTorch: its parameters by their names
copies              copies of the weights, as averages
samples             samples of a batch of PyTorch's loader, and the pass through the data that it is of
modules             names of PyTorch's modules and parameters
jax_modules         calls of modules in JAX: the trace of a gradient, which reports
jax_libraries       modules of Flax, Haiku and Equinox: names, weights, settings
jax_reports         an operation of JAX that hands out arrays of a program
jax_passes          forward passes in JAX as they arrive, and their lines
jax_float64         a program of JAX computed in float64
module_calls        lines of the calls of modules, which no framework has a part in
generators          states of the random number generators
hashing             SHA-256 of arrays, scalars and text
memory, digests     the bytes of arrays, read in place; SHA-256 of several at the same time
shards              whole tensors of those that ranks share
contents            zeros and NaN in what is hashed
files               the files that the process writes
checkpoints         copies of those that --checkpoints names
recorder            the file of lines, and what keeps an exception from the program
"""
