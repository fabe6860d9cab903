"""Keras 3 on TensorFlow, JAX and PyTorch: each call of `Optimizer.apply`, in `fit` and in loops of one's own.

What is traced into a graph gets an operation that reports: a call of Python in TensorFlow's, a callback in JAX'. XLA's
graphs of TensorFlow take no such call. There `fit` is looked at after each batch, where it calls its callbacks.
"""

import functools
import os
import sys
import threading
import weakref
from typing import Any, Optional

from . import generators, hashing, jax, pytorch, recorder

SEED = "seed_generator_state"  # the last part of the path of the variable that Keras' layers draw from
Named = list[tuple[str, str, Any]]  # channel, name, array


class Now(threading.local):
    """What this thread is doing: the model and the batch that it trains on, and whether within Optimizer.apply."""

    model: Any = None
    data: Any = None
    applying = False


class Watched:
    """One optimizer. Its initial weights are hashed before its first step is traced or taken."""

    def __init__(self, place: int, optimizer: Any):
        self.place = place
        self.reference = weakref.ref(optimizer)
        self.initial: dict[str, str] = {}
        self.started = False
        self.in_graph = False  # whether its graph reports each step
        self.by_batches = False  # whether its steps are seen after each batch of `fit`
        self.model: Any = None  # weakly
        self.iterations = 0  # before the first batch of this `fit`
        self.counted = 0  # of all optimizers, at that time


now = Now()
known: dict[int, Watched] = {}


def watched(optimizer: Any) -> Watched:
    found = known.get(id(optimizer))
    if found is None or found.reference() is not optimizer:
        found = known[id(optimizer)] = Watched(len(known), optimizer)
    return found


def stepping(optimizer: Any) -> Any:
    """The one that takes the steps: within that of a model under mixed precision, which scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def after_keras(keras: Any) -> None:
    """Watches Keras 3, once all of it has loaded; its backend is decided by then."""
    assert recorder.active is not None
    recorder.active.frameworks["keras"] = keras
    if int(str(keras.__version__).split(".")[0]) < 3:
        recorder.note(f"Keras {keras.__version__} is not observed: 3 or later is needed")
        return
    if backend() == "tensorflow":
        recorder.active.frameworks["tensorflow"] = sys.modules["tensorflow"]
    if backend() == "torch":
        recorder.note("Keras on PyTorch: batches are observed only where a DataLoader of PyTorch hands them out")
    os.register_at_fork(after_in_child=known.clear)
    pytorch.add_entries(keras_before=before, keras_after=after)
    _watch_apply(sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer)
    _watch_fit(keras)


def backend() -> str:
    return str(sys.modules["keras"].backend.backend())


def _watch_apply(kind: Any) -> None:
    apply = kind.apply

    @functools.wraps(apply)
    def watching(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        arrays = pytorch.entries["keras_before"](self, grads, trainable_variables)
        try:
            result = apply(self, grads, trainable_variables)
        except BaseException:
            now.applying = False
            raise
        pytorch.entries["keras_after"](self, arrays)
        return result

    kind.apply = watching


def _watch_fit(keras: Any) -> None:
    """Learns of the model and the batch from `train_step`, and of `fit` from its list of callbacks."""
    kind = next(kind for kind in keras.Model.__mro__ if "train_step" in vars(kind))
    train_step = kind.train_step

    @functools.wraps(train_step)
    def training(self: Any, *arguments: Any, **named: Any) -> Any:
        now.model, now.data = self, arguments[-1] if arguments else None
        try:
            return train_step(self, *arguments, **named)
        finally:
            now.model = now.data = None

    if backend() != "torch":  # torch.compile would trace it; there, batches come from its loaders
        kind.train_step = training
    callbacks = keras.callbacks.CallbackList
    on_train_begin, on_train_batch_end = callbacks.on_train_begin, callbacks.on_train_batch_end

    @functools.wraps(on_train_begin)
    def beginning(self: Any, *arguments: Any, **named: Any) -> Any:
        begin(self)
        return on_train_begin(self, *arguments, **named)

    @functools.wraps(on_train_batch_end)
    def ending(self: Any, *arguments: Any, **named: Any) -> Any:
        after_batch(self)
        return on_train_batch_end(self, *arguments, **named)

    callbacks.on_train_begin, callbacks.on_train_batch_end = beginning, ending


@recorder.quietly
def begin(callbacks: Any) -> None:
    """At the start of `fit`: the weights before the first step, and where its count of steps begins."""
    model = getattr(callbacks, "_model", None) or getattr(callbacks, "model", None)
    optimizer = getattr(model, "optimizer", None)
    if model is None or optimizer is None or recorder.active is None:
        return
    this = watched(stepping(optimizer))
    this.model = weakref.ref(model)
    this.iterations, this.counted = int(hashing.plain(optimizer.iterations)), recorder.active.steps
    if not this.started and not this.initial:
        this.initial = of_weights(this, model.trainable_variables)


@recorder.quietly
def before(optimizer: Any, grads: list[Any], trainable_variables: Optional[list[Any]]) -> Optional[Named]:
    """The step's batch, gradients and weights, as arrays of whatever is being traced; None where it is not watched."""
    if now.applying or recorder.active is None or not grads:
        return None
    this = watched(optimizer)
    if this.model is None and now.model is not None:
        this.model = weakref.ref(now.model)
    trained = trainable_variables if trainable_variables is not None else optimizer._trainable_variables
    now.applying = True
    arrays: Named = [("batch", path, leaf) for path, leaf in hashing.leaves(now.data, "0") if hasattr(leaf, "shape")]
    for variable, gradient in zip(trained, grads):
        name = name_of(variable, this)
        if hasattr(gradient, "indices") and not callable(gradient.indices):  # TensorFlow's IndexedSlices
            arrays += [("gradients", f"{name}.indices", gradient.indices)]
            gradient = gradient.values
        if gradient is not None:
            arrays.append(("gradients", name, gradient))
    if backend() == "jax":
        arrays += variables(this, "initial weights", trained)
    elif not this.started and not this.initial:
        this.initial = initial(this, trained)
    arrays += [("later", name_of(variable, this), variable) for variable in trained]
    return arrays


@recorder.quietly
def after(optimizer: Any, arrays: Optional[Named]) -> None:
    """Adds what the step has changed, and has it written now, or each time that the graph runs."""
    if arrays is None:
        return
    now.applying = False
    this = watched(optimizer)
    found = [array for array in arrays if array[0] != "later"]
    found += variables(this, "weights", [variable for channel, _, variable in arrays if channel == "later"])
    model = this.model() if this.model is not None else None
    whole: Any = getattr(model, "optimizer", None)
    if backend() == "jax" or stepping(whole) is not optimizer:
        whole = optimizer
    found += variables(this, "optimizer", whole.variables)
    if model is not None and backend() != "jax":
        found += variables(this, "buffers", model.non_trainable_variables)
    elif model is not None:
        recorder.note("Keras on JAX: variables that are not trained, such as moving averages, are not observed")
    else:
        recorder.note("Keras: in a loop of one's own, variables that are not trained are not observed")
    if not any(channel == "batch" for channel, _, _ in found) and backend() != "torch":
        recorder.note("Keras: without `train_step` of Keras itself, batches are not observed")
    if backend() == "tensorflow":
        _report_tensorflow(this, found)
    elif backend() == "jax":
        jax.report(found, this.place)
    else:
        record(this, [array[:2] for array in found], *(array[2] for array in found))


def _report_tensorflow(this: Watched, arrays: Named) -> None:
    tensorflow = sys.modules["tensorflow"]
    names = [array[:2] for array in arrays]
    values = [array[2] for array in arrays]
    if tensorflow.executing_eagerly():
        record(this, names, *values)
    elif tensorflow.distribute.has_strategy() or _in_xla():
        this.by_batches = True
        recorder.note("Keras: a step that XLA compiles, or that is distributed, is seen after each batch of `fit` only")
    else:
        tensorflow.numpy_function(functools.partial(record, this, names), values, [])


def _in_xla() -> bool:
    """Whether a function of TensorFlow that is being traced asked for jit_compile; it says so to nobody below it."""
    frame: Optional[Any] = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("polymorphic_function.py"):
            function = frame.f_locals.get("self")
            if getattr(function, "_jit_compile", None):
                return True
        frame = frame.f_back
    return False


@recorder.quietly
def record(this: Watched, names: list[tuple[str, str]], *values: Any) -> None:
    """Counts the step, and writes its line where it is due."""
    to = recorder.active
    if to is None:
        return
    number = to.count()
    if to.is_due(number) or not this.started:
        seen: recorder.Hashes = {"generator": generators.hashes()}
        put(seen, [(channel, name, value) for (channel, name), value in zip(names, values)])
        write(this, number, seen)


def write(this: Watched, number: int, seen: recorder.Hashes) -> None:
    """A step's line; before the first one, the initial weights."""
    assert recorder.active is not None
    if not this.started and this.initial:
        if number == 1:
            recorder.active.step(0, {"initial weights": this.initial, "generator": seen["generator"]})
        else:
            seen["initial weights"] = this.initial
    this.started = True
    recorder.active.step(number, seen)


@recorder.quietly
def after_batch(callbacks: Any) -> None:
    """Looks at a model after a batch of `fit`, if its graph reports nothing."""
    model = getattr(callbacks, "_model", None) or getattr(callbacks, "model", None)
    optimizer = getattr(model, "optimizer", None)
    to = recorder.active
    if model is None or optimizer is None or to is None:
        return
    this = watched(stepping(optimizer))
    if not this.by_batches:
        return
    number = this.counted + int(hashing.plain(optimizer.iterations)) - this.iterations
    if number == to.steps:  # skipped, as its gradients were infinite
        return
    if number - to.steps > 1:
        recorder.note("Keras: with steps_per_execution, only the last step of each execution is seen")
    due = any(to.is_due(step) for step in range(to.steps + 1, number + 1))
    to.steps = number
    if due or not this.started:
        seen: recorder.Hashes = {"generator": generators.hashes()}
        for channel, listed in (
            ("weights", model.trainable_variables),
            ("optimizer", optimizer.variables),
            ("buffers", model.non_trainable_variables),
        ):
            put(seen, variables(this, channel, listed))
        write(this, number, seen)


def name_of(variable: Any, this: Watched) -> str:
    return f"{this.place}.{getattr(variable, 'path', None) or getattr(variable, 'name', 'variable')}"


def variables(this: Watched, channel: str, listed: Any) -> Named:
    """The variables' values. Those that layers draw random numbers with are generators, wherever they stand."""
    found: Named = []
    taken: set[str] = set()
    for variable in listed:
        name = name_of(variable, this)
        while name in taken:
            name += "'"
        taken.add(name)
        value = getattr(variable, "value", variable)
        found.append(("generator" if name.endswith(SEED) else channel, name, value() if callable(value) else value))
    return found


def initial(this: Watched, trained: list[Any]) -> dict[str, str]:
    """The weights before the first step. While a graph is traced they are read outside of it."""
    if backend() != "tensorflow":
        return of_weights(this, trained)
    try:
        with sys.modules["tensorflow"].init_scope():
            return of_weights(this, trained)
    except Exception:
        recorder.note("Keras: weights that are made while a graph is traced are not observed before the first step")
        return {}


def of_weights(this: Watched, trained: Any) -> dict[str, str]:
    seen: recorder.Hashes = {}
    put(seen, variables(this, "weights", trained))
    return seen.get("weights", {})


def put(seen: recorder.Hashes, arrays: Named) -> None:
    """Adds the hash of each array. What is none has no hash: its text may hold an address, which no run has again."""
    for channel, name, value in arrays:
        code = hashing.of_leaf(value)
        if code is None:
            recorder.note(f"Keras: {name} ({channel}) is of type {type(value).__name__}, which is not hashed")
        else:
            seen.setdefault(channel, {})[name] = code
