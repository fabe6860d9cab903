"""Connectionist temporal classification, in float64 logarithms.

Its exponentials and logarithms are operations of their own, which have definitions.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops
from repro.portable.modes.pytorch.dispatcher.tables import compose, define

Lengths: TypeAlias = Sequence[int] | Tensor


@define("_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss", "_use_miopen_ctc_loss.Tensor")
def never(*_: Any, **__: Any) -> bool:
    return False


@compose("_ctc_loss", "_ctc_loss.Tensor")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """log_probs [T, N, C] -> the loss of each sample, and the logarithms of what its labels begin with, [N, T, L]."""
    if not log_probs.numel():
        own = with_native_ops(torch.ops.aten._ctc_loss)  # which says what is wrong
        return own(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    labels = _labels(log_probs, targets, target_lengths, blank)
    steps, ends = _numbers(input_lengths, log_probs), _numbers(target_lengths, log_probs) * 2
    taken = _taken(log_probs, labels)
    skips = _skips(labels)
    log_alpha = _beginnings(taken, skips)
    return (-_likelihood(log_alpha, steps, ends)).to(log_probs.dtype), log_alpha.to(log_probs.dtype)


def _beginnings(taken: Tensor, skips: Tensor) -> Tensor:
    """The logarithms of the probabilities of all ways to each label and step, float64 [N, T, L]."""
    alpha = taken[0].masked_fill(torch.arange(taken.shape[2], device=taken.device) > 1, -torch.inf)
    alphas = [alpha]
    for probabilities in taken[1:]:
        alpha = probabilities + _joined(alpha, _moved(alpha, 1), _moved(alpha, 2).masked_fill(~skips, -torch.inf))
        alphas.append(alpha)
    return torch.stack(alphas, 1)


def _likelihood(log_alpha: Tensor, steps: Tensor, ends: Tensor) -> Tensor:
    """Its logarithm, [N]: of what ends with the last label or with the blank after it."""
    place = (steps - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, log_alpha.shape[2])
    last = log_alpha.gather(1, place).squeeze(1)
    before = last.gather(1, (ends - 1).clamp(min=0)[:, None]).masked_fill(ends[:, None] == 0, -torch.inf)
    likelihood = _joined(last.gather(1, ends[:, None]), before).squeeze(1)
    return torch.where(steps == 0, torch.where(ends == 0, 0.0, -torch.inf), likelihood)


@compose("_ctc_loss_backward", "_ctc_loss_backward.Tensor")
def ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    labels = _labels(log_probs, targets, target_lengths, blank)
    steps, ends = _numbers(input_lengths, log_probs), _numbers(target_lengths, log_probs) * 2
    taken = _taken(log_probs, labels)
    skips = _skips(labels)
    place = torch.arange(labels.shape[1], device=labels.device)
    final = (place == ends[:, None]) | (place == ends[:, None] - 1)
    beta = torch.full_like(taken[0], -torch.inf)
    gradients = []
    for t in reversed(range(len(taken))):
        following = _moved(beta.masked_fill(~skips, -torch.inf), -2)
        beta = taken[t] + _joined(beta, _moved(beta, -1), following)
        beta = torch.where((steps == t + 1)[:, None] & final, taken[t], beta)
        gradients.append(beta)
    log_beta = torch.stack(gradients[::-1], 1)
    log_alpha = _beginnings(taken, skips)  # what was saved is rounded
    likelihood = _likelihood(log_alpha, steps, ends).view(-1, 1, 1)
    share = torch.exp(log_alpha + log_beta - likelihood - taken.transpose(0, 1))
    share = share.masked_fill(log_beta == -torch.inf, 0.0).masked_fill(log_alpha == -torch.inf, 0.0).transpose(0, 1)
    zeros = torch.zeros(_batched(log_probs).shape, dtype=torch.float64, device=log_probs.device)
    shares = zeros.scatter_add(2, labels.expand(share.shape), share)
    gradient = (torch.exp(_batched(log_probs).double()) - shares) * grad.double().view(1, -1, 1)
    beyond = torch.arange(len(taken), device=labels.device)[:, None] >= steps
    if zero_infinity:
        beyond = beyond | (neg_log_likelihood.view(1, -1) == torch.inf)
    return gradient.masked_fill(beyond[:, :, None], 0.0).to(log_probs.dtype).view(log_probs.shape)


def _batched(log_probs: Tensor) -> Tensor:
    return log_probs if log_probs.dim() == 3 else log_probs.unsqueeze(1)


def _numbers(lengths: Lengths, like: Tensor) -> Tensor:
    return torch.as_tensor(lengths, dtype=torch.int64, device=like.device).reshape(-1)


def _labels(log_probs: Tensor, targets: Tensor, lengths: Lengths, blank: int) -> Tensor:
    """Labels with blanks between and around them, [N, L]."""
    numbers = [int(length) for length in lengths]
    rows = torch.full((len(numbers), 2 * max(numbers, default=0) + 1), blank, device=log_probs.device)
    begin = 0
    for sample, length in enumerate(numbers):
        if targets.dim() > 1:
            row = targets[sample, :length]
        else:
            row = targets[begin : begin + length]
            begin += length
        rows[sample, 1 : 2 * length : 2] = row.to(rows.device)
    return rows


def _taken(log_probs: Tensor, labels: Tensor) -> Tensor:
    """The logarithms of the probabilities of the labels at each step, float64 [T, N, L]."""
    return _batched(log_probs).gather(2, labels.expand(len(log_probs), *labels.shape)).double()


def _skips(labels: Tensor) -> Tensor:
    """True for labels that may follow the label before without a blank between them."""
    skips = torch.zeros_like(labels, dtype=torch.bool)
    skips[:, 3::2] = labels[:, 3::2] != labels[:, 1:-2:2]
    return skips


def _moved(x: Tensor, steps: int) -> Tensor:
    """The logarithm of nothing, and what was before, or after."""
    edge = torch.full_like(x[:, : abs(steps)], -torch.inf)
    return torch.cat([edge, x], 1)[:, : x.shape[1]] if steps > 0 else torch.cat([x, edge], 1)[:, -x.shape[1] :]


def _joined(*logarithms: Tensor) -> Tensor:
    """The logarithm of a sum, whose terms are added in their order."""
    most = torch.stack(logarithms).amax(0)
    most = most.masked_fill(most == -torch.inf, 0.0)
    total: Any = 0.0
    for each in logarithms:
        total = total + torch.exp(each - most)
    return most + torch.log(total)
