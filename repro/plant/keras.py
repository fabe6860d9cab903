"""Parts of a Keras training.

They are looked at before the first batch of `fit`, when all callbacks have had their say, so that one that resumes has put
its values in; in a loop of one's own before the first step of an optimizer is taken or traced.
"""

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

from ..observe import generators as observed_generators
from ..observe import keras_steps as observed
from . import arrays, controls, generators
from .controls import Part, module
from .values import Items

NUMBERS = {"iteration": "optimizer's iterations", "learning_rate": "learning rate"}
"""Variables of an optimizer that are no slots, by the last part of their path."""
met: list[Any] = []  # optimizers whose first step has come


def after_keras(keras: Any) -> None:
    """Waits for the first batch of `fit`, and for the first step of each optimizer."""
    if int(str(keras.__version__).split(".")[0]) < 3:
        return
    callbacks = keras.callbacks.CallbackList
    begin = callbacks.on_train_batch_begin

    @functools.wraps(begin)
    def on_train_batch_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = begin(self, *args, **kwargs)
        before_batch(self)
        return result

    callbacks.on_train_batch_begin = on_train_batch_begin
    kind = sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer
    apply = kind.apply

    @functools.wraps(apply)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        before_apply(self)
        return apply(self, *args, **kwargs)

    kind.apply = watched


@controls.never_raise
def before_batch(callbacks: Any) -> None:
    """Meets the moment before the first batch of a model's `fit`."""
    model, optimizer = observed.model_and_optimizer(callbacks)
    if optimizer is not None:
        meet(optimizer, model)


@controls.never_raise
def before_apply(optimizer: Any) -> None:
    """Meets the moment before the first step of an optimizer in a loop of one's own."""
    model = observed.training.model
    outer = getattr(model, "optimizer", None)
    meet(outer if observed.inner(outer) is optimizer else optimizer, model)


def meet(optimizer: Any, model: Any) -> None:
    """Meets the moment, where variables can be given other values."""
    control, inner = controls.active, observed.inner(optimizer)
    if control is None or any(inner is one for one in met) or not getattr(inner, "built", False):
        return
    if observed.backend() == "jax" and _stateless():
        return
    met.append(inner)
    if not control.is_first(f"step {len(met) - 1}"):
        return
    with _outside_of_graphs():
        control.meet(f"step {len(met) - 1}", _parts(optimizer, model, len(met) - 1))


def _stateless() -> bool:
    """True where JAX traces a step: what variables are given there is a part of the compiled program."""
    scope = sys.modules["keras.src.backend.common.stateless_scope"]
    return bool(scope.in_stateless_scope())


def _outside_of_graphs() -> Any:
    tensorflow = module("tensorflow") if observed.backend() == "tensorflow" else None
    return tensorflow.init_scope() if tensorflow is not None else contextlib.nullcontext()


def _parts(optimizer: Any, model: Any, index: int) -> dict[str, Part]:
    of = "" if not index else f" of optimizer {index}"
    groups: dict[str, list[Any]] = {}
    for variable in optimizer.variables:
        name = NUMBERS.get(str(getattr(variable, "path", "")).rpartition("/")[2], "optimizer's slots")
        groups.setdefault(f"{name}{of}", []).append(variable)
    for variable in _state_of(model):
        seeds = str(variable.path).endswith(observed.SEED)
        groups.setdefault("seed generators of the layers" if seeds else "buffers", []).append(variable)
    parts = {} if index else _generators()
    return {**parts, **{name: _of_variables(variables) for name, variables in groups.items()}}


def _state_of(model: Any) -> Iterator[Any]:
    """The variables of a model that are not trained, without those of its metrics."""
    if model is not None:
        metrics = {id(variable) for variable in getattr(model, "metrics_variables", ())}
        yield from (variable for variable in model.non_trainable_variables if id(variable) not in metrics)


def _generators() -> dict[str, Part]:
    parts = generators.parts()
    if observed_generators._tensorflow_state() is not None:
        rng = sys.modules["tensorflow.python.eager.context"]._context._rng
        parts["generator `tensorflow`"] = generators.of_python(rng)
    return parts


def _of_variables(variables: list[Any]) -> Part:
    """Variables, by their place: a loaded model may have other names."""

    def read() -> Items:
        return {str(place): arrays.array(variable) for place, variable in enumerate(variables)}

    def write(items: Items) -> None:
        for place, variable in enumerate(variables):
            if str(place) in items:
                variable.assign(arrays.numbers(items[str(place)], variable))

    return Part(read, write)
