"""Trainings of PyTorch's programs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from evidence.coverage.registry import STEPS

State = Mapping[str, Tensor]
Loss = Callable[[nn.Module, Any], Tensor]


def prepare(threads: int, device: str | None) -> None:
    """The number of threads, and where programs make their tensors."""
    torch.set_num_threads(threads)
    torch.set_default_device(device)


def enable(kernels: bool) -> None:
    """Switches portable numerics on."""
    import repro.portable.pytorch as portable
    from repro.portable.kernels import pytorch as compiler

    compiler.available = compiler.available and kernels
    portable.enable()


def seed() -> None:
    torch.manual_seed(0)


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    x, y = batch
    return F.cross_entropy(model(x), y)


@dataclass
class Training:
    """A model, and what a step needs."""

    model: nn.Module
    batch: Callable[[int], Any]
    """The batch of a step, counted from 0."""
    optimizer: torch.optim.Optimizer
    loss: Loss = cross_entropy
    clip: float | None = None
    """Largest norm of the gradients."""
    scheduler: Any = None
    """It steps after each step."""
    average: Any = None
    """An `AveragedModel`, updated after each step."""
    losses: list[float] = field(default_factory=list)

    def step(self, number: int) -> Tensor:
        batch = self.batch(number)

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            loss = self.loss(self.model, batch)
            loss.backward()
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            return loss

        loss = self.optimizer.step(closure)
        if self.scheduler is not None:
            self.scheduler.step()
        if self.average is not None:
            self.average.update_parameters(self.model)
        return loss

    def run(self, steps: int = STEPS) -> State:
        """The state after a number of steps."""
        self.model.train()
        for number in range(steps):
            self.losses.append(self.step(number).item())
        state = self.model.state_dict()
        if self.average is not None:
            state |= {f"average.{name}": tensor for name, tensor in self.average.state_dict().items()}
        return state


def arrays(state: State) -> dict[str, np.ndarray]:
    """Named tensors of any type."""
    return {name: _array(tensor) for name, tensor in state.items()}


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu().contiguous()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


# --- optimizers -------------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True),
    "SGD, fused": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True),
    "SGD, single": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, dampening=0.1, foreach=False),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "AdamW, single": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False, amsgrad=True),
    "AdamW, foreach": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-3, betas=(0.9, 0.98), eps=1e-9),
    "Adam, fused": lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=1e-2, fused=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.9, eps=1e-3, momentum=0.9, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2, foreach=True),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=1e-3, momentum_decay=4e-3),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=1e-3),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=1e-3),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=1e-2),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=1e-3),
    "LBFGS": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=2, line_search_fn="strong_wolfe"),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=1e-2),
    "Muon": lambda p: torch.optim.Muon([x for x in p if x.dim() == 2], lr=1e-2),
}
"""By name: a function of the parameters."""


def images(shape: tuple[int, ...] = (2, 3, 64, 64), classes: int = 10) -> Callable[[int], Any]:
    """Batches of random images with labels, [N, C, H, W] and [N]; two batches take turns."""
    batches = [(torch.randn(shape), torch.randint(classes, (shape[0],))) for _ in range(2)]
    return lambda number: batches[number % len(batches)]


def classifier(
    model: nn.Module,
    optimizer: str,
    shape: tuple[int, ...] = (2, 3, 64, 64),
    loss: Loss = cross_entropy,
    **options: Any,
) -> Training:
    """A network that classifies images in ten classes; other options are those of Training."""
    return Training(model, images(shape), OPTIMIZERS[optimizer](list(model.parameters())), loss, **options)
