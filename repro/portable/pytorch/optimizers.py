"""The optimizers of portable numerics in PyTorch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from repro.portable import rules
from repro.portable.pytorch.grids import tables, to_state
from repro.run import float32, layout
from repro.run.config import Params


class Optimizer:
    """The slots of every weight: by name, tensors that start from zero. Native optimizers build on it, too."""

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


def optimizer(params: Params, weights: dict[str, nn.Parameter]) -> Optimizer:
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return {"sgd": Sgd, "adam": Adam}[params.optimizer](params, weights)


class Sgd(Optimizer):
    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        rate, decay = float32.nearest(self.params.learning_rate), float32.nearest(self.params.momentum)
        (momenta,) = slots
        momentum = to_state(_flat(momenta).double().mul_(decay).add_(_flat(gradients)))
        _unflatten(momentum, momenta)
        _unflatten(to_state(_flat(weights) - rate * momentum.double()), weights)


class Adam(Optimizer):
    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        rate, count = float32.nearest(self.params.learning_rate), self.slots[layout.ADAM_COUNT]
        corrections = tables(rules.adam_corrections, count.device)
        at = count.long().clamp(max=len(corrections[0]) - 1)
        first_correction, second_correction = (table.take(at) for table in corrections)  # indexing would read `at` back
        count += 1
        firsts, seconds = slots
        g = _flat(gradients).double()
        first = to_state(rules.BETA1 * _flat(firsts).double() + (1 - rules.BETA1) * g)
        square = to_state(g * g).double()
        second = to_state(rules.BETA2 * _flat(seconds).double() + (1 - rules.BETA2) * square)
        root = (second.double() * second_correction).sqrt()
        step = to_state(first.double() * first_correction / (root + rules.EPSILON))
        _unflatten(first, firsts)
        _unflatten(second, seconds)
        _unflatten(to_state(_flat(weights) - rate * step.double()), weights)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def _unflatten(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))
