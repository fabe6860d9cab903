"""`fit` of Keras: the model and the batch of a step, and steps that no graph reports."""

import functools
import weakref
from typing import Any

from . import memory, recorder, scalars
from .keras_steps import (
    arrays_of,
    backend,
    hash_weights,
    inner,
    model_and_optimizer,
    observed_optimizer,
    training,
    write,
)

EXECUTIONS = "Keras: with steps_per_execution, only the last step of each execution is seen"

watched_kinds: Any = weakref.WeakSet()  # classes with a train_step that is observed


def watch_fit(keras: Any) -> None:
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


@recorder.never_raise
def before_batch(callbacks: Any) -> None:
    """Looks at a model before a batch of `fit`: its weights before the first step, its count where no graph reports.

    Callbacks have all had their say by now: one that resumes, such as BackupAndRestore, has put its weights in.
    """
    model, optimizer = model_and_optimizer(callbacks)
    active = recorder.active
    if optimizer is None or active is None:
        return
    scalars.callbacks[:] = [weakref.ref(callback) for callback in getattr(callbacks, "callbacks", ())]
    observed = observed_optimizer(inner(optimizer))
    observed.model = weakref.ref(model)
    if backend() == "jax" or (observed.started and not observed.by_batches):
        return
    observed.iterations, observed.steps = int(memory.to_numpy(optimizer.iterations)), active.steps
    weights = hash_weights(observed, model.trainable_variables)
    if not observed.started:
        observed.initial = weights
    if active.looks_between:
        observed.before = dict(weights)


@recorder.never_raise
def after_batch(callbacks: Any) -> None:
    """Looks at a model after a batch of `fit`, if its graph reports nothing."""
    model, optimizer = model_and_optimizer(callbacks)
    active = recorder.active
    if optimizer is None or active is None:
        return
    observed = observed_optimizer(inner(optimizer))
    if not observed.by_batches:
        return
    number = observed.steps + int(memory.to_numpy(optimizer.iterations)) - observed.iterations
    if number == active.steps:  # skipped, as its gradients were infinite
        return
    if number - active.steps > 1:
        recorder.note(EXECUTIONS)
    due = any(active.is_due(step) for step in range(active.steps + 1, number + 1))
    active.steps = number
    if due or not observed.started:
        arrays = arrays_of(observed, "weights", model.trainable_variables)
        arrays += arrays_of(observed, "optimizer", optimizer.variables)
        arrays += arrays_of(observed, "buffers", model.non_trainable_variables)
        write(observed, number, arrays)
