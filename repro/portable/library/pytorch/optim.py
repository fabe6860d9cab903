"""Optimizers with torch.optim's names, and clipping.

docs/reference/specification.md says what a step computes. Rates and factors, all but eps, count as the float32 numbers next to them.
Rates of repro.portable.schedules go into `param_groups[i]["lr"]`; torch.optim.lr_scheduler's are not portable.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from repro.portable.arguments import check, kind, refuse
from repro.portable.compiler.pytorch.memory import overlap
from repro.portable.definitions import optimizers
from repro.portable.library.autograd.pytorch import run
from repro.portable.numbers import tables

TOGETHER = 2**22
"""Numbers that are put together, since a step is elementwise: fewer calls, the same bits."""
PIECE = 2**16
"""Numbers that a CPU updates at once, so that they stay in its cache."""


NUMBERS = ("weight_decay", "eps", "momentum", "rho", "betas")


class _Optimizer(torch.optim.Optimizer):
    """A portable optimizer. Its state_dict holds for each weight the slots and the number of its steps."""

    operation: Callable[..., tuple[Tensor, ...]]
    """Backend, weights, gradients and slots, each [N], and what constants() gives -> the new weights and slots."""
    slots: ClassVar[tuple[str, ...]]
    _addresses: Sequence[int] = ()
    """Addresses of weights that do not overlap, as was checked."""

    def __init__(self, params: Any, others: dict[str, Any], **defaults: Any) -> None:
        for option, value in others.items():
            raise refuse(type(self).__name__, f"{option}={value} has no portable form; leave it out")
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        name, group = type(self).__name__, self.param_groups[-1]
        self._check_options(group)
        self._check_memory()
        for weight in group["params"]:
            own = kind(weight)
            check(name, own == "float32", f"a weight {list(weight.shape)} is {own}; convert it to float32")

    def _check_options(self, group: dict[str, Any]) -> None:
        """UsageError for a number of a group that has no portable form."""
        known = {option: group[option] for option in NUMBERS if option in group}
        optimizers.check_options(type(self).__name__, **known, lr=float(group["lr"]))

    def _check_memory(self) -> None:
        """UsageError where weights share memory: one's update would be lost in the other's."""
        weights = [weight for group in self.param_groups for weight in group["params"]]
        addresses = [weight.data_ptr() for weight in weights]
        if addresses != self._addresses and overlap(weights):
            remedy = "give one of them, or copies"
            raise refuse(type(self).__name__, f"weights share memory, so that updates would be lost; {remedy}")
        self._addresses = addresses

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all weights that have a gradient. Returns what the closure does, which computes them."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._check_memory()
        for group in self.param_groups:
            self._check_options(group)
            weights = [weight for weight in group["params"] if weight.grad is not None]
            for weight in weights:
                state = self.state[weight]
                for slot in () if state else self.slots:
                    state[slot] = torch.zeros_like(weight)
                state["step"] = state.get("step", 0) + 1
            for together in self._together(weights):
                self._update(group, together)
        return loss

    def _update(self, group: dict[str, Any], weights: list[Tensor]) -> None:
        """Neighbors as one."""
        states = [self.state[weight] for weight in weights]
        held = [weights, *([state[slot] for state in states] for slot in self.slots)]
        new, gradient = [_flat(tensors) for tensors in held], _flat([weight.grad for weight in weights])
        constants = self.constants(group, states[0]["step"])
        size = PIECE if gradient.device.type == "cpu" else TOGETHER
        for start in range(0, len(gradient), size):
            weight, *slots = parts = [array[start : start + size] for array in new]
            updated = run(self.operation, weight, gradient[start : start + size], *slots, *constants)
            for part, result in zip(parts, updated, strict=True):
                part.copy_(result)
        for tensors, array in zip(held, new, strict=True):
            for tensor, part in zip(tensors, array.split([each.numel() for each in tensors]), strict=True):
                tensor.copy_(part.view(tensor.shape))

    def _together(self, weights: list[Tensor]) -> Iterator[list[Tensor]]:
        """Neighbors on one device that have made equally many steps, up to a size."""
        together: list[Tensor] = []
        for weight in weights:
            if together and (
                self.state[weight]["step"] != self.state[together[0]]["step"]
                or weight.device != together[0].device
                or sum(each.numel() for each in together) + weight.numel() > TOGETHER
            ):
                yield together
                together = []
            together.append(weight)
        if together:
            yield together

    def constants(self, group: dict[str, Any], step: int) -> tuple[Any, ...]:
        """The constants of a step, counted from 1. What differs from step to step is a float64 tensor of no dimension."""
        raise NotImplementedError


class SGD(_Optimizer):
    operation = staticmethod(optimizers.sgd)
    slots = ("momentum_buffer",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        *,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **others: Any,
    ) -> None:
        check("SGD", not nesterov or bool(momentum), "nesterov needs momentum; give momentum")
        super().__init__(params, others, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)

    def constants(self, group: dict[str, Any], _step: int) -> tuple[Any, ...]:
        return _rate(group), *_float32(group, "weight_decay", "momentum"), group["nesterov"]


class Adam(_Optimizer):
    operation = staticmethod(optimizers.adam)
    slots = ("exp_avg", "exp_avg_sq")
    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(params, others, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def constants(self, group: dict[str, Any], step: int) -> tuple[Any, ...]:
        betas = tuple(map(tables.float32, group["betas"]))
        table = tables.adam(*betas)
        corrections = [_scalar(float(row[min(step, len(row)) - 1])) for row in table]
        return corrections, _rate(group), *_float32(group, "weight_decay"), *betas, group["eps"], self.decoupled


class AdamW(Adam):
    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        **others: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, **others)


class Adadelta(_Optimizer):
    operation = staticmethod(optimizers.adadelta)
    slots = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        **others: Any,
    ) -> None:
        super().__init__(params, others, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)

    def constants(self, group: dict[str, Any], _step: int) -> tuple[Any, ...]:
        return _rate(group), *_float32(group, "weight_decay", "rho"), group["eps"]


@torch.no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Multiplies all gradients by min(1, max_norm / norm), in place; returns the norm over all of them, float32 [].

    Squares are added in the order of the parameters, so give them in the same order everywhere.
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [parameter.grad for parameter in given if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    clipped, norm = run(optimizers.clip, gradients, tables.float32(max_norm))
    for gradient, new in zip(gradients, clipped, strict=True):
        gradient.copy_(new)
    return norm


def _flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _rate(group: dict[str, Any]) -> Tensor:
    return _scalar(tables.float32(float(group["lr"])))


def _scalar(number: float) -> Tensor:
    return torch.tensor(number, dtype=torch.float64)


def _float32(group: dict[str, Any], *options: str) -> list[float]:
    return [tables.float32(float(group[option])) for option in options]
