"""Losses and gradients of programs, against those of float64.

    python accuracy.py GROUP [NAME ...]

Prints for each program how far its first loss and its gradients are from those of PyTorch in float64, relative to their
norm: with PyTorch's own float32, and with portable numerics of the precision `highest`. A wrong definition stands out.
Dropout is off, and BatchNorm has fixed statistics: those of two samples magnify each error.
"""

import copy
import sys
import warnings
from typing import Any

from torch import Tensor, nn

import repro.portable.pytorch as portable
from evidence.coverage import pytorch_training
from evidence.coverage.pytorch_training import Training
from evidence.coverage.registry import load
from evidence.coverage.worker import seed
from repro.portable.kernels import pytorch as compiler

RATES = ("p", "drop_prob", "drop_rate", "dropout", "attention_dropout")
"""What modules call the share of what they drop."""


def steady(model: nn.Module) -> None:
    """Takes out what is random, and what magnifies errors."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.eval()
        for name in RATES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def double(batch: Any) -> Any:
    """Numbers as float64, in tuples, lists and dictionaries, too."""
    if isinstance(batch, Tensor):
        return batch.double() if batch.is_floating_point() else batch
    if isinstance(batch, dict):
        return {name: double(each) for name, each in batch.items()}
    return type(batch)(map(double, batch)) if isinstance(batch, (tuple, list)) else batch


def gradients(training: Training, model: nn.Module, batch: Any) -> tuple[float, list[Tensor]]:
    """The loss, and its gradients, of a copy."""
    model = copy.deepcopy(model)
    seed(pytorch_training)
    loss = training.loss(model, batch)
    loss.backward()
    return loss.item(), [p.grad.double() for p in model.parameters() if p.grad is not None]


def far(tensors: list[Tensor], exact: list[Tensor]) -> float:
    """The norm of the differences to that of the exact ones."""
    differences = sum((a - b).square().sum().item() for a, b in zip(tensors, exact, strict=True))
    return (differences / sum(b.square().sum().item() for b in exact)) ** 0.5


def worst(tensors: list[Tensor], exact: list[Tensor], least: float = 1e-3) -> float:
    """The same of the worst parameter, of those whose gradient is no small part of all."""
    whole = sum(b.square().sum().item() for b in exact) ** 0.5
    return max(far([a], [b]) for a, b in zip(tensors, exact, strict=True) if b.norm().item() > least * whole)


def main(group: str, *names: str) -> None:
    warnings.filterwarnings("ignore")
    compiler.available = False
    programs = load(group)
    for name in names or programs:
        seed(pytorch_training)
        training = programs[name]()
        if not isinstance(training, Training):
            continue
        model, batch = training.model.train(), training.batch(0)
        steady(model)
        exact = gradients(training, copy.deepcopy(model).double(), double(batch))
        own = gradients(training, model, batch)
        with portable.enable(precision="highest"):
            result = gradients(training, model, batch)
        print(
            f"{name:40} loss {exact[0]:.6f} own {abs(own[0] - exact[0]) / abs(exact[0]):.1e}"
            f" portable {abs(result[0] - exact[0]) / abs(exact[0]):.1e}; gradients own {far(own[1], exact[1]):.1e}"
            f" (worst {worst(own[1], exact[1]):.1e}), portable {far(result[1], exact[1]):.1e}"
            f" (worst {worst(result[1], exact[1]):.1e})",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
