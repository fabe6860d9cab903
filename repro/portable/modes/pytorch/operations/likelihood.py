"""The negative log-likelihood of classes."""

import torch
from torch import Tensor

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import losses
from repro.portable.modes.pytorch.dispatcher.tables import define
from repro.portable.modes.pytorch.dispatcher.types import as_given
from repro.portable.modes.pytorch.operations.losses import MEAN, NONE
from repro.portable.modes.pytorch.operations.sums import exact


def _counted(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The class that counts for each sample, with an axis of size 1, and its weight, 0 for what is ignored."""
    if self.dim() > 1:
        target = target.unsqueeze(1)
    seen = target != ignore_index
    classes = torch.where(seen, target, 0)
    if weight is None:
        return classes, seen.to(self.dtype)
    return classes, torch.where(seen, weight[classes], 0.0)


def _is_plain(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> bool:
    """True if one definition computes it: on a GPU nobody should wait for whether all labels are there."""
    plain = self.dim() == 2 and self.dtype == torch.float32 and self.is_cpu and self.numel() > 0
    return plain and weight is None and reduction != NONE and target.dtype == torch.int64


@define("nll_loss_forward", "nll_loss2d_forward")
@as_given
def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The likelihood loss of [N, C], [C] or [N, C, H, W]. The sum of losses and that of weights are exact."""
    if _is_plain(self, target, weight, reduction):
        loss, total, lost = run(losses.likelihood, self, target, ignore_index, reduction == MEAN)
        if lost.item():  # PyTorch says itself what is wrong
            return torch.ops.aten.nll_loss_forward(self, target, weight, reduction, ignore_index)
        return loss[0], total[0]
    classes, shares = _counted(self, target, weight, ignore_index)
    axis = min(1, self.dim() - 1)
    index = classes if self.dim() > 1 else classes.reshape(1)
    each = self.gather(axis, index)
    each = -(each if weight is None else each * shares)
    each = torch.where(shares.reshape(each.shape) == 0, 0.0, each)
    if reduction == NONE and self.dim() > 1:
        return each.squeeze(1), self.new_zeros(())
    total = exact(shares.reshape(-1), (0,)).to(self.dtype).reshape(())
    loss = exact(each.reshape(-1), (0,)).reshape(())
    if reduction == MEAN:
        loss = loss.to(self.dtype) / total
    return loss.to(self.dtype), total


@define("nll_loss_backward", "nll_loss2d_backward")
@as_given
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    if _is_plain(self, target, weight, reduction) and grad_output.dtype == torch.float32:
        return run(
            losses.likelihood_backward,
            grad_output,
            total_weight,
            target,
            self.shape[1],
            ignore_index,
            reduction == MEAN,
        )
    classes, shares = _counted(self, target, weight, ignore_index)
    gradient = grad_output / total_weight if reduction == MEAN else grad_output
    if reduction == NONE and self.dim() > 1:
        gradient = gradient.unsqueeze(1)
    index = classes if self.dim() > 1 else classes.reshape(1)
    values = torch.where(shares == 0, 0.0, -(gradient * shares)).reshape(index.shape)
    return torch.zeros_like(self).scatter_(min(1, self.dim() - 1), index, values)
