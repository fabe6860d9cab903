"""Optimizers of Keras, and what a line of their steps holds."""

import sys
import threading
import weakref
from typing import Any, Optional

from . import generators, hashing, recorder, scalars, tf_data
from .recorder import CHANGED, INITIAL, Arrays

SEED = "seed_generator_state"  # the last part of the path of the variable that Keras' layers draw from

NO_BATCH = "Keras: outside of `fit`, batches are observed only as arguments of a function that TensorFlow compiles, or from tf.data"
NO_INITIAL = "Keras: weights that are made while a graph is traced are not observed before the first step"


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


def observed_optimizer(optimizer: Any) -> ObservedOptimizer:
    for observed in optimizers:
        if observed.reference() is optimizer:
            return observed
    optimizers.append(ObservedOptimizer(len(optimizers), optimizer))
    return optimizers[-1]


def model_and_optimizer(callbacks: Any) -> tuple[Any, Any]:
    model = getattr(callbacks, "_model", None) or getattr(callbacks, "model", None)
    return model, getattr(model, "optimizer", None)


def backend() -> str:
    return str(sys.modules["keras"].backend.backend())


def inner(optimizer: Any) -> Any:
    """The one that takes the steps: within that of a model under mixed precision, which scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def write(observed: ObservedOptimizer, number: int, arrays: Arrays) -> None:
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


def variable_name(variable: Any, observed: ObservedOptimizer) -> str:
    return f"{observed.index}.{getattr(variable, 'path', None) or getattr(variable, 'name', 'variable')}"


def arrays_of(observed: ObservedOptimizer, channel: str, variables: Any) -> Arrays:
    """The variables' values."""
    variables = list(variables)
    return [(*name, value) for name, value in zip(names_of(observed, channel, variables), map(_value, variables))]


def _value(variable: Any) -> Any:
    """What a variable holds, as the backend has it."""
    value = getattr(variable, "value", variable)
    return value() if callable(value) else value


def names_of(observed: ObservedOptimizer, channel: str, variables: Any) -> list[tuple[str, str]]:
    """The channel and name of each. Those that layers draw random numbers with are generators, wherever they stand."""
    names: list[tuple[str, str]] = []
    taken: set[str] = set()
    for variable in variables:
        name = variable_name(variable, observed)
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(("generator" if name.endswith(SEED) else channel, name))
    return names


def initial_weights(observed: ObservedOptimizer, trained: list[Any]) -> dict[str, str]:
    """The weights before the first step. While a graph is traced they are read outside of it.

    Those that are made there have no value yet: then the first step's own line has them.
    """
    if backend() != "tensorflow":
        return hash_weights(observed, trained)
    try:
        with sys.modules["tensorflow"].init_scope():
            made = all(bool(one.is_initialized()) for one in map(_value, trained) if hasattr(one, "is_initialized"))
            return hash_weights(observed, trained) if made else {}
    except Exception:
        recorder.note(NO_INITIAL)
        return {}


def weights_before(observed: ObservedOptimizer, trained: list[Any]) -> Arrays:
    """The weights as they are now, where a graph is traced; else their hashes are kept for the line of the step."""
    tensorflow = sys.modules["tensorflow"] if backend() == "tensorflow" else None
    if tensorflow is None or tensorflow.executing_eagerly():
        observed.before = hash_weights(observed, trained)
        return []
    arrays = arrays_of(observed, CHANGED, trained)
    return [(*names, tensorflow.convert_to_tensor(variable)) for *names, variable in arrays]


def hash_weights(observed: ObservedOptimizer, trained: Any) -> dict[str, str]:
    hashes: recorder.Hashes = {}
    _add_hashes(hashes, arrays_of(observed, "weights", trained))
    return hashes.get("weights", {})


def _add_hashes(hashes: recorder.Hashes, arrays: Arrays) -> None:
    for channel, codes in hashing.hash_arrays(arrays, "Keras: {1} ({0})").items():
        hashes.setdefault(channel, {}).update(codes)
