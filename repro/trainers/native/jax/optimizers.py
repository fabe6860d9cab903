"""Optimizers of mnist_jax.py: Optax', and their slots.

Its counterparts are repro/trainers/native/pytorch/optimizers.py and repro/trainers/native/tensorflow/optimizers.py.
"""

import jax
import numpy as np
import optax
from optax.tree_utils import tree_get, tree_set

from repro.trainers.loop import layout
from repro.trainers.loop.config import Params

# Optax' names of layout.SLOTS; portable numerics have theirs in the same classes of states.
KEYS = {"sgd": ("trace",), "adam": ("mu", "nu"), "adadelta": ("e_g", "e_x")}


class Optax:
    """SGD with momentum, Adam or Adadelta."""

    def __init__(self, params: Params) -> None:
        rate = params.learning_rate
        optimizers = {
            "sgd": lambda: optax.sgd(rate, params.momentum),
            "adam": lambda: optax.adam(rate),
            "adadelta": lambda: optax.adadelta(rate, rho=0.95, eps=1e-7),
        }
        self.init, self.transform = optimizers[params.optimizer]()

    def update(self, weights, slots, gradients):
        updates, slots = self.transform(gradients, slots, weights)
        return optax.apply_updates(weights, updates), slots


def optimizer(params: Params) -> Optax:
    """The optimizer that `params.optimizer` names."""
    return Optax(params)


def named(optimizer: str, slots: optax.OptState) -> dict[str, np.ndarray]:
    """The slots by their names in the layout, float32."""
    slots_by_name = {
        layout.slot(slot, name): array
        for slot, key in zip(layout.SLOTS[optimizer], KEYS[optimizer], strict=True)
        for name, array in tree_get(slots, key).items()
    }
    if optimizer == "adam":
        slots_by_name[layout.ADAM_COUNT] = tree_get(slots, "count")
    return {name: np.array(array, np.float32) for name, array in slots_by_name.items()}


def placed(optimizer: str, init, state: dict[str, np.ndarray]) -> optax.OptState:
    """The inverse of named(): as `init` would make them for the weights of this state, but with the state's values."""
    weights = layout.weights_of(state)
    slots = jax.eval_shape(init, weights)  # computes nothing
    for slot, key in zip(layout.SLOTS[optimizer], KEYS[optimizer], strict=True):
        slots = tree_set(slots, **{key: {name: state[layout.slot(slot, name)] for name in weights}})
    return tree_set(slots, count=np.int32(state[layout.ADAM_COUNT])) if optimizer == "adam" else slots
