"""Losses of margins, each number by itself; their sums have definitions."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import compose
from repro.portable.modes.pytorch.dispatcher.types import as_given

NONE, MEAN, SUM = 0, 1, 2


def _reduced(x: Tensor, reduction: int, shape: Sequence[int]) -> Tensor:
    return x.view(shape) if reduction == NONE else x.mean() if reduction == MEAN else x.sum()


def _share(x: Tensor, reduction: int) -> float:
    """The weight of each class of each row."""
    return 1.0 / max(1, x.numel() if reduction == MEAN else x.shape[1])


def _margins(x: Tensor, target: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """The distance of each class within the margin of the right one, and which that is: [N, C]."""
    right = torch.arange(x.shape[1], device=x.device) == target[:, None]
    away = margin - x.gather(1, target[:, None]) + x
    return away.clamp(min=0).masked_fill(right, 0.0), right


@compose("multi_margin_loss")
def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any = 1, margin: Any = 1, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    x, classes = _rows(self), target.reshape(-1)
    away, _ = _margins(x, classes, margin)
    away = away if p == 1 else away * away
    if weight is not None:
        away = away * weight[classes][:, None]
    return _reduced(away.mean(1), reduction, target.shape)


@compose("multi_margin_loss_backward")
def multi_margin_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    p: Any,
    margin: Any,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    x, classes = _rows(self), target.reshape(-1)
    away, right = _margins(x, classes, margin)
    slope = (away > 0).to(x.dtype) if p == 1 else 2.0 * away
    if weight is not None:
        slope = slope * weight[classes][:, None]
    slope = slope * _share(x, reduction)
    slope = torch.where(right, -slope.sum(1, keepdim=True), slope) * grad_output.reshape(-1, 1)
    return slope.view(self.shape)


def _rows(x: Tensor) -> Tensor:
    return x if x.dim() > 1 else x.view(1, -1)


@compose("multilabel_margin_loss_forward")
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    x, is_target, given = _labels(self, target)
    away = _pairs(x, _rows(target), is_target, given)
    loss = _reduced(away.sum((1, 2)) * (1.0 / x.shape[1]), reduction, self.shape[:-1])
    return loss, is_target.to(self.dtype).view(target.shape)


@compose("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    x, which, given = _labels(self, target)
    labels = _rows(target)
    slope = (_pairs(x, labels, which, given) > 0).to(x.dtype)
    gradient = slope.sum(1).scatter_add(1, labels.clamp(min=0), -slope.sum(2))
    gradient = gradient * _share(x, reduction) * grad_output.reshape(-1, 1)
    return gradient.view(self.shape)


def _labels(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows; which of their classes are labels; and which labels are before the first of -1."""
    rows, labels = _rows(x), _rows(target)
    given = (labels < 0).cumsum(1) == 0
    number = torch.zeros(rows.shape, dtype=torch.int64, device=x.device)
    return rows, number.scatter_add(1, labels.clamp(min=0), given.long()) > 0, given


def _pairs(x: Tensor, labels: Tensor, is_target: Tensor, given: Tensor) -> Tensor:
    """The distance of each class within the margin of each label, [N, labels, C]."""
    away = 1.0 - x.gather(1, labels.clamp(min=0))[:, :, None] + x[:, None]
    return away.clamp(min=0).masked_fill(~given[:, :, None] | is_target[:, None], 0.0)


@compose("soft_margin_loss_backward")
@as_given
def soft_margin_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """-target / (1 + exp(target x)), which keeps its bits where it is small."""
    slope = target * grad_output * -torch.sigmoid(-(target * self))
    return slope / max(1, self.numel()) if reduction == MEAN else slope
