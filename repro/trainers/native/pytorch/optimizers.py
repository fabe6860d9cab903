"""Optimizers of mnist_pytorch.py, by the functions of torch.optim.

Its classes import PyTorch's compiler first, which takes long, and do more at every step. Counterparts of this file are
repro/trainers/native/tensorflow/optimizers.py and repro/trainers/native/jax/optimizers.py.
"""

import torch
from torch import Tensor, nn
from torch.optim.adadelta import adadelta
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from repro.trainers.loop import layout
from repro.trainers.loop.config import Params


class Optimizer:
    """The slots of every weight: by name, tensors that start from zero."""

    def __init__(self, params: Params, weights: dict[str, nn.Parameter]) -> None:
        self.params, self.weights = params, weights
        self.slots: dict[str, Tensor] = {
            layout.slot(slot, name): torch.zeros_like(weight, requires_grad=False)
            for slot in layout.SLOTS[params.optimizer]
            for name, weight in weights.items()
        }
        if params.optimizer == "adam":
            self.slots[layout.ADAM_COUNT] = next(iter(weights.values())).new_zeros((), requires_grad=False)

    def of(self, slot: str) -> list[Tensor]:
        """The slot of all weights."""
        return [self.slots[layout.slot(slot, name)] for name in self.weights]

    def zero_grad(self) -> None:
        for weight in self.weights.values():
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Updates all weights, and the slots, by the weights' gradients."""
        weights = list(self.weights.values())
        self.update(weights, [weight.grad for weight in weights], *map(self.of, layout.SLOTS[self.params.optimizer]))

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        raise NotImplementedError


UNUSED = {"weight_decay": 0, "maximize": False}


class Sgd(Optimizer):
    """Fused: one call updates all weights."""

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        lr, momentum = self.params.learning_rate, self.params.momentum
        sgd(weights, gradients, *slots, lr=lr, momentum=momentum, dampening=0, nesterov=False, fused=True, **UNUSED)


class Adam(Optimizer):
    """Fused: one call updates all weights."""

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        counts = [self.slots[layout.ADAM_COUNT].clone() for _ in weights]  # the function counts for each weight
        constants = {"lr": self.params.learning_rate, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
        adam(weights, gradients, *slots, [], counts, **constants, amsgrad=False, fused=True, **UNUSED)
        self.slots[layout.ADAM_COUNT] += 1


class Adadelta(Optimizer):
    """Adadelta, which updates one weight after another."""

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        counts = [weights[0].new_zeros(()) for _ in weights]  # for nothing
        adadelta(weights, gradients, *slots, counts, lr=self.params.learning_rate, rho=0.95, eps=1e-7, **UNUSED)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": Sgd, "adam": Adam, "adadelta": Adadelta}


def optimizer(params: Params, weights: dict[str, nn.Parameter]) -> Optimizer:
    """The optimizer that `params.optimizer` names."""
    return OPTIMIZERS[params.optimizer](params, weights)
