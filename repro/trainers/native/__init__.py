"""Fast parts of the reference trainers: pytorch/, tensorflow/ and jax/, with the same file names.

layers       convolution, and max_pool where the framework's own is slow
optimizers   SGD, Adam, Adadelta, and their slots
ranks        processes, and in JAX threads, that share a batch
collectives  collectives of a step, as few as it allows (JAX)
parts        a batch cut for threads and their caches (JAX, TensorFlow)
graph        a step as a CUDA graph (PyTorch)
"""
