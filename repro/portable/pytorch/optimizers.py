"""Optimizer: the base class for mnist_pytorch.py."""

import torch
from torch import Tensor, nn

from repro.run import layout
from repro.run.config import Params


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
        """One slot of all weights."""
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
