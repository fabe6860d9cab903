"""Trainings of Flax's linen modules."""

from typing import Any

import jax
import optax
from flax import linen as nn
from flax.core import FrozenDict
from flax.training import train_state
from jax import Array

from evidence.coverage.jax_training import Training

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


class TrainState(train_state.TrainState):
    """With statistics of BatchNorm, and a key of dropout."""

    statistics: Any
    key: Array


def training(
    model: nn.Module, optimizer: optax.GradientTransformation, batches: Any, loss: Any, *inputs: Any, **options: Any
) -> Training:
    """`loss` is of a function that applies the model, and of a batch; `inputs` initialize it."""
    keys = dict(zip(("params", "dropout", "noise"), jax.random.split(jax.random.key(0), 3), strict=True))
    variables = jax.jit(model.init)(keys, *inputs)
    state = TrainState.create(
        apply_fn=model.apply,
        params=variables["params"],
        tx=optimizer,
        statistics=variables.get("batch_stats", FrozenDict()),
        key=jax.random.key(1),
    )

    def step(state: TrainState, batch: Any) -> Any:
        keys = dict(zip(("dropout", "noise"), jax.random.split(jax.random.fold_in(state.key, state.step)), strict=True))

        def value(params: Any) -> Any:
            changed = {}

            def apply(*given: Any, **also: Any) -> Any:
                variables = {"params": params, "batch_stats": state.statistics}
                result, changed["batch_stats"] = state.apply_fn(
                    variables, *given, mutable=["batch_stats"], rngs=keys, **also
                )
                return result

            result = loss(apply, batch)
            return result, changed["batch_stats"].get("batch_stats", state.statistics)

        (result, statistics), gradients = jax.value_and_grad(value, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients, statistics=statistics), result

    return Training(state, step, batches, **options)


def classified(apply: Any, batch: Any) -> Array:
    x, y = batch
    return cross_entropy(apply(x), y).mean()
