"""Steps of Keras 3 on its three backends.

Each call of `Optimizer.apply` is seen, in `fit` and in loops of one's own. What is traced into a graph gets an
operation that reports: a call of Python in TensorFlow's, a callback in JAX'. XLA's graphs of TensorFlow take no such
call. There `fit` is looked at after each batch, where it calls its callbacks.
"""

import functools
import os
import sys
import traceback
import weakref
from typing import Any, Optional

from . import entries, graphs, hashing, jax, keras_fit, recorder, tf_data
from .keras_steps import (
    ObservedOptimizer,
    arrays_of,
    backend,
    initial_weights,
    inner,
    names_of,
    observed_optimizer,
    optimizers,
    training,
    variable_name,
    weights_before,
    write,
)
from .recorder import INITIAL, Arrays

NO_LOADER = "Keras on PyTorch: batches are observed only where a DataLoader of PyTorch hands them out"
NO_BUFFERS = "Keras: in a loop of one's own, variables that are not trained are not observed"
BY_BATCHES = "Keras: a step that XLA compiles, or that is distributed, is seen after each batch of `fit` only"


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
    keras_fit.watch_fit(keras)


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
        name = variable_name(variable, observed)
        if hasattr(gradient, "indices") and not callable(gradient.indices):  # TensorFlow's IndexedSlices
            arrays += [("gradients", f"{name}.indices", gradient.indices)]
            gradient = gradient.values
        if gradient is not None:
            arrays.append(("gradients", name, gradient))
    if backend() == "jax":
        arrays += arrays_of(observed, INITIAL, trained)
    else:
        if not observed.started and not observed.initial:
            observed.initial = initial_weights(observed, trained)
        if recorder.active.looks_between:
            arrays += weights_before(observed, trained)
    arrays += [("later", "", variable) for variable in trained]
    return arrays


@recorder.never_raise
def after(optimizer: Any, arrays: Optional[Arrays]) -> None:
    """Adds what the step has changed, and has it written now, or each time that the graph runs."""
    if arrays is None:
        return
    observed = observed_optimizer(optimizer)
    seen = [array for array in arrays if array[0] != "later"]
    seen += arrays_of(observed, "weights", [variable for channel, _, variable in arrays if channel == "later"])
    model = observed.model() if observed.model is not None else None
    outer: Any = getattr(model, "optimizer", None)
    if backend() == "jax" or inner(outer) is not optimizer:
        outer = optimizer
    seen += arrays_of(observed, "optimizer", outer.variables)
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
        return arrays_of(observed, "buffers", variables)
    return [(*name, value) for name, value in zip(names_of(observed, "buffers", variables), training.state[1])]


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
        write(observed, number, [(channel, name, value) for (channel, name), value in zip(names, values)])
    tf_data.batches.clear()
