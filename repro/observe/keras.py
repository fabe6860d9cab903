"""Steps of Keras 3 on its three backends.

Each call of `Optimizer.apply` is seen, in `fit` and in loops of one's own. What is traced into a graph gets an
operation that reports: a call of Python in TensorFlow's, a callback in JAX'. XLA's graphs of TensorFlow take no such
call. There `fit` is looked at after each batch, where it calls its callbacks.
"""

import functools
import os
import sys
import threading
import traceback
import weakref
from typing import Any, Optional

from . import entries, generators, graphs, hashing, jax, recorder, scalars, tf_data
from .recorder import CHANGED, INITIAL, Arrays

SEED = "seed_generator_state"  # the last part of the path of the variable that Keras' layers draw from

NO_LOADER = "Keras on PyTorch: batches are observed only where a DataLoader of PyTorch hands them out"
NO_BATCH = "Keras: outside of `fit`, batches are observed only as arguments of a function that TensorFlow compiles, or from tf.data"
NO_BUFFERS = "Keras: in a loop of one's own, variables that are not trained are not observed"
NO_INITIAL = "Keras: weights that are made while a graph is traced are not observed before the first step"
BY_BATCHES = "Keras: a step that XLA compiles, or that is distributed, is seen after each batch of `fit` only"
EXECUTIONS = "Keras: with steps_per_execution, only the last step of each execution is seen"


class Training(threading.local):
    """The model and the batch that this thread trains on, and whether it is within Optimizer.apply."""

    model: Any = None
    data: Any = None
    state: Any = None  # on JAX: the state that the step begins with
    applying = False


class ObservedOptimizer:
    """An optimizer. Its initial weights are hashed before its first step is traced or taken."""

    def __init__(self, index: int, optimizer: Any):
        self.index = index
        self.reference = weakref.ref(optimizer)
        self.initial: dict[str, str] = {}
        self.before: Optional[dict[str, str]] = None  # the weights before this step, if no graph reports them
        self.started = False
        self.by_batches = False  # True if its steps are seen after each batch of `fit`
        self.model: Any = None  # a weak reference
        self.iterations = 0  # before this batch of `fit`
        self.steps = 0  # the steps of all optimizers at that time


training = Training()
optimizers: list[ObservedOptimizer] = []
watched_kinds: Any = weakref.WeakSet()  # classes with a train_step that is observed


def observed_optimizer(optimizer: Any) -> ObservedOptimizer:
    for observed in optimizers:
        if observed.reference() is optimizer:
            return observed
    optimizers.append(ObservedOptimizer(len(optimizers), optimizer))
    return optimizers[-1]


def _inner(optimizer: Any) -> Any:
    """The one that takes the steps: within that of a model under mixed precision, which scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def after_keras(keras: Any) -> None:
    """Watches Keras 3, once all of it has loaded; its backend is decided by then."""
    recorder.add_framework(keras)
    if int(str(keras.__version__).split(".")[0]) < 3:
        recorder.note(f"Keras {keras.__version__} is not observed: 3 or later is needed")
        return
    if backend() == "tensorflow":
        recorder.add_framework(sys.modules["tensorflow"])
    if backend() == "torch":
        recorder.note(NO_LOADER)
    os.register_at_fork(after_in_child=optimizers.clear)
    entries.add("before apply", before)
    entries.add("after apply", after)
    _watch_apply(sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer)
    _watch_fit(keras)


def backend() -> str:
    return str(sys.modules["keras"].backend.backend())


def _watch_apply(kind: Any) -> None:
    apply = kind.apply

    @functools.wraps(apply)
    def watched(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        outermost = not training.applying
        arrays = entries.entries["before apply"](self, grads, trainable_variables)
        try:
            result = apply(self, grads, trainable_variables)
        finally:
            if outermost:  # also if `before` failed after it had reported that a step begins
                training.applying = False
        entries.entries["after apply"](self, arrays)
        return result

    kind.apply = watched


def _watch_fit(keras: Any) -> None:
    """Learns of the model and the batch as `fit` makes its function, and of `fit` from its list of callbacks."""
    if backend() != "torch":  # torch.compile would trace it; there, batches come from its loaders
        kind = next(kind for kind in keras.Model.__mro__ if "make_train_function" in vars(kind))
        make_train_function = kind.make_train_function
        _watch_train_step(kind)

        @functools.wraps(make_train_function)
        def watched_make(self: Any, *args: Any, **kwargs: Any) -> Any:
            _watch_train_step(type(self))
            return make_train_function(self, *args, **kwargs)

        kind.make_train_function = watched_make
    callbacks = keras.callbacks.CallbackList
    on_train_batch_begin, on_train_batch_end = callbacks.on_train_batch_begin, callbacks.on_train_batch_end

    @functools.wraps(on_train_batch_begin)
    def watched_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = on_train_batch_begin(self, *args, **kwargs)
        before_batch(self)
        return result

    @functools.wraps(on_train_batch_end)
    def watched_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        after_batch(self)
        return on_train_batch_end(self, *args, **kwargs)

    callbacks.on_train_batch_begin, callbacks.on_train_batch_end = watched_begin, watched_end


@recorder.never_raise
def _watch_train_step(model: type) -> None:
    """Learns of the model and the batch from `train_step`, also where the program has one of its own."""
    kind = next(kind for kind in model.__mro__ if "train_step" in vars(kind))
    train_step: Any = vars(kind)["train_step"]
    if kind in watched_kinds or not callable(train_step):
        return
    watched_kinds.add(kind)

    @functools.wraps(train_step)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        outer = training.model, training.data, training.state
        training.model, training.data = self, args[-1] if args else kwargs.get("data")
        training.state = args[0] if backend() == "jax" and len(args) == 2 else kwargs.get("state")
        try:
            return train_step(self, *args, **kwargs)
        finally:
            training.model, training.data, training.state = outer

    setattr(kind, "train_step", watched)  # noqa: B010


def _model_and_optimizer(callbacks: Any) -> tuple[Any, Any]:
    model = getattr(callbacks, "_model", None) or getattr(callbacks, "model", None)
    return model, getattr(model, "optimizer", None)


@recorder.never_raise
def before_batch(callbacks: Any) -> None:
    """Looks at a model before a batch of `fit`: its weights before the first step, its count where no graph reports.

    Callbacks have all had their say by now: one that resumes, such as BackupAndRestore, has put its weights in.
    """
    model, optimizer = _model_and_optimizer(callbacks)
    active = recorder.active
    if optimizer is None or active is None:
        return
    scalars.callbacks[:] = [weakref.ref(callback) for callback in getattr(callbacks, "callbacks", ())]
    observed = observed_optimizer(_inner(optimizer))
    observed.model = weakref.ref(model)
    if backend() == "jax" or (observed.started and not observed.by_batches):
        return
    observed.iterations, observed.steps = int(hashing.to_numpy(optimizer.iterations)), active.steps
    weights = _hash_weights(observed, model.trainable_variables)
    if not observed.started:
        observed.initial = weights
    if active.looks_between:
        observed.before = dict(weights)


@recorder.never_raise
def before(optimizer: Any, grads: list[Any], trainable_variables: Optional[list[Any]]) -> Optional[Arrays]:
    """The step's batch, gradients and weights, as arrays of whatever is being traced; None where it is not watched."""
    if training.applying or recorder.active is None or not grads:
        return None
    observed = observed_optimizer(optimizer)
    if observed.model is None and training.model is not None:
        observed.model = weakref.ref(training.model)
    trained = trainable_variables if trainable_variables is not None else optimizer._trainable_variables
    training.applying = True
    batch = [*hashing.leaves(training.data, "0")]
    if training.data is None and backend() == "tensorflow":
        batch = graphs.given()
    arrays: Arrays = [("batch", path, leaf) for path, leaf in batch if hasattr(leaf, "shape")]
    for variable, gradient in zip(trained, grads):
        name = _variable_name(variable, observed)
        if hasattr(gradient, "indices") and not callable(gradient.indices):  # TensorFlow's IndexedSlices
            arrays += [("gradients", f"{name}.indices", gradient.indices)]
            gradient = gradient.values
        if gradient is not None:
            arrays.append(("gradients", name, gradient))
    if backend() == "jax":
        arrays += _arrays(observed, INITIAL, trained)
    else:
        if not observed.started and not observed.initial:
            observed.initial = _initial_weights(observed, trained)
        if recorder.active.looks_between:
            arrays += _weights_before(observed, trained)
    arrays += [("later", "", variable) for variable in trained]
    return arrays


@recorder.never_raise
def after(optimizer: Any, arrays: Optional[Arrays]) -> None:
    """Adds what the step has changed, and has it written now, or each time that the graph runs."""
    if arrays is None:
        return
    observed = observed_optimizer(optimizer)
    seen = [array for array in arrays if array[0] != "later"]
    seen += _arrays(observed, "weights", [variable for channel, _, variable in arrays if channel == "later"])
    model = observed.model() if observed.model is not None else None
    outer: Any = getattr(model, "optimizer", None)
    if backend() == "jax" or _inner(outer) is not optimizer:
        outer = optimizer
    seen += _arrays(observed, "optimizer", outer.variables)
    if model is not None and (backend() != "jax" or training.state is not None):
        seen += _buffers(observed, model)
    else:
        recorder.note(NO_BUFFERS)
    if backend() == "tensorflow":
        _report_tensorflow(observed, seen)
    elif backend() == "jax":
        jax.report(seen, observed.index)
    else:
        _record(observed, [array[:2] for array in seen], *(array[2] for array in seen))


def _buffers(observed: ObservedOptimizer, model: Any) -> Arrays:
    """The variables that are not trained; on JAX as they are before the step, as it hands them from step to step."""
    variables = model.non_trainable_variables
    if training.state is None:
        return _arrays(observed, "buffers", variables)
    return [(*name, value) for name, value in zip(_names(observed, "buffers", variables), training.state[1])]


def _report_tensorflow(observed: ObservedOptimizer, arrays: Arrays) -> None:
    tensorflow = sys.modules["tensorflow"]
    names = [array[:2] for array in arrays]
    values = [array[2] for array in arrays]
    if tensorflow.executing_eagerly():
        _record(observed, names, *values)
    elif tensorflow.distribute.has_strategy() or _in_xla():
        observed.by_batches = True
        recorder.note(BY_BATCHES)
    else:
        tensorflow.numpy_function(functools.partial(_record, observed, names), values, [])


def _in_xla() -> bool:
    """True if a function that TensorFlow is tracing asked for jit_compile; the functions below it are not told."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe())]
    tracing = [frame for frame in frames if frame.f_code.co_filename.endswith("polymorphic_function.py")]
    return any(getattr(frame.f_locals.get("self"), "_jit_compile", None) for frame in tracing)


@recorder.never_raise
def _record(observed: ObservedOptimizer, names: list[tuple[str, str]], *values: Any) -> None:
    """Counts the step, and writes its line where it is due."""
    active = recorder.active
    if active is None:
        return
    number = active.count()
    if active.is_due(number) or not observed.started:
        _write(observed, number, [(channel, name, value) for (channel, name), value in zip(names, values)])
    tf_data.batches.clear()


@recorder.never_raise
def after_batch(callbacks: Any) -> None:
    """Looks at a model after a batch of `fit`, if its graph reports nothing."""
    model, optimizer = _model_and_optimizer(callbacks)
    active = recorder.active
    if optimizer is None or active is None:
        return
    observed = observed_optimizer(_inner(optimizer))
    if not observed.by_batches:
        return
    number = observed.steps + int(hashing.to_numpy(optimizer.iterations)) - observed.iterations
    if number == active.steps:  # skipped, as its gradients were infinite
        return
    if number - active.steps > 1:
        recorder.note(EXECUTIONS)
    due = any(active.is_due(step) for step in range(active.steps + 1, number + 1))
    active.steps = number
    if due or not observed.started:
        arrays = _arrays(observed, "weights", model.trainable_variables)
        arrays += _arrays(observed, "optimizer", optimizer.variables)
        arrays += _arrays(observed, "buffers", model.non_trainable_variables)
        _write(observed, number, arrays)


def _write(observed: ObservedOptimizer, number: int, arrays: Arrays) -> None:
    """A step's line, with the initial weights if it is the optimizer's first one."""
    assert recorder.active is not None
    hashes: recorder.Hashes = {"generator": generators.hashes(), "scalars": scalars.of_callbacks()}
    handed = tf_data.taken()
    _add_hashes(hashes, arrays if any(array[0] == "batch" for array in arrays) else [*handed, *arrays])
    if "batch" not in hashes and backend() == "tensorflow" and not observed.by_batches:
        recorder.note(NO_BATCH)
    if observed.before is not None:
        hashes.setdefault(CHANGED, observed.before)
        observed.before = None
    if not observed.started and (initial := observed.initial or hashes.get(CHANGED)):
        hashes[INITIAL] = dict(initial)
    observed.started = True
    recorder.active.step(number, hashes)


def _variable_name(variable: Any, observed: ObservedOptimizer) -> str:
    return f"{observed.index}.{getattr(variable, 'path', None) or getattr(variable, 'name', 'variable')}"


def _arrays(observed: ObservedOptimizer, channel: str, variables: Any) -> Arrays:
    """The variables' values."""
    variables = list(variables)
    return [(*name, value) for name, value in zip(_names(observed, channel, variables), map(_value, variables))]


def _value(variable: Any) -> Any:
    """What a variable holds, as the backend has it."""
    value = getattr(variable, "value", variable)
    return value() if callable(value) else value


def _names(observed: ObservedOptimizer, channel: str, variables: Any) -> list[tuple[str, str]]:
    """The channel and name of each. Those that layers draw random numbers with are generators, wherever they stand."""
    names: list[tuple[str, str]] = []
    taken: set[str] = set()
    for variable in variables:
        name = _variable_name(variable, observed)
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(("generator" if name.endswith(SEED) else channel, name))
    return names


def _initial_weights(observed: ObservedOptimizer, trained: list[Any]) -> dict[str, str]:
    """The weights before the first step. While a graph is traced they are read outside of it.

    Those that are made there have no value yet: then the first step's own line has them.
    """
    if backend() != "tensorflow":
        return _hash_weights(observed, trained)
    try:
        with sys.modules["tensorflow"].init_scope():
            made = all(bool(one.is_initialized()) for one in map(_value, trained) if hasattr(one, "is_initialized"))
            return _hash_weights(observed, trained) if made else {}
    except Exception:
        recorder.note(NO_INITIAL)
        return {}


def _weights_before(observed: ObservedOptimizer, trained: list[Any]) -> Arrays:
    """The weights as they are now, where a graph is traced; else their hashes are kept for the line of the step."""
    tensorflow = sys.modules["tensorflow"] if backend() == "tensorflow" else None
    if tensorflow is None or tensorflow.executing_eagerly():
        observed.before = _hash_weights(observed, trained)
        return []
    arrays = _arrays(observed, CHANGED, trained)
    return [(*names, tensorflow.convert_to_tensor(variable)) for *names, variable in arrays]


def _hash_weights(observed: ObservedOptimizer, trained: Any) -> dict[str, str]:
    hashes: recorder.Hashes = {}
    _add_hashes(hashes, _arrays(observed, "weights", trained))
    return hashes.get("weights", {})


def _add_hashes(hashes: recorder.Hashes, arrays: Arrays) -> None:
    for channel, name, value in arrays:
        code = hashing.hash_or_note(value, f"Keras: {name} ({channel})")
        if code is not None:
            hashes.setdefault(channel, {})[name] = code
