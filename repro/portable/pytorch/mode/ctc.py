"""Connectionist temporal classification, without a kernel of its own.

A. Graves et al., ICML 2006, in logarithms. A state is a label or a blank between two: 2 S + 1 for S labels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from repro.portable.pytorch.mode.dispatch import compose, define

Lengths = Sequence[int] | Tensor


@define("_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor")
def use_cudnn(*_: Any, **__: Any) -> bool:
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
    """log_probs [T, N, C] -> the negative logarithms of the likelihoods [N], and of those of prefixes [N, T, 2 S + 1]."""
    times, labels = _lengths(input_lengths, log_probs), _lengths(target_lengths, log_probs)
    states = _states(targets, labels, blank)
    alphas = _prefixes(_emitted(log_probs, states), _skips(states, blank))
    last = alphas.gather(1, (times - 1).clamp(min=0)[:, None, None].expand(-1, 1, alphas.shape[2]))[:, 0]
    ends = torch.stack((2 * labels, (2 * labels - 1).clamp(min=0)), 1)
    both = last.gather(1, ends)
    both[:, 1] = torch.where(labels > 0, both[:, 1], -torch.inf)
    empty = torch.where(labels == 0, 0.0, torch.inf).to(both.dtype)
    return torch.where(times > 0, -_logsumexp(both, 1), empty), alphas


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
    """The gradient before a log_softmax: probabilities less those of the labels, as PyTorch has it."""
    times, labels = _lengths(input_lengths, log_probs), _lengths(target_lengths, log_probs)
    states = _states(targets, labels, blank)
    betas = _suffixes(_emitted(log_probs, states), _skips(states, blank), times, labels)
    # Both count what a state emits.
    shares = log_alpha + betas - _emitted(log_probs, states).movedim(1, 0) + neg_log_likelihood[:, None, None]
    shares = torch.where(shares == shares, shares, -torch.inf).exp()
    found = torch.zeros_like(log_probs.movedim(1, 0))
    found = found.scatter_add(2, states[:, None].expand(-1, found.shape[1], -1), shares)
    found = (log_probs.exp() - found.movedim(0, 1)) * grad[:, None]
    late = torch.arange(log_probs.shape[0], device=log_probs.device)[:, None] >= times
    found = found.masked_fill(late[..., None], 0.0)
    return found.masked_fill((neg_log_likelihood == torch.inf)[:, None], 0.0) if zero_infinity else found


def _lengths(lengths: Lengths, like: Tensor) -> Tensor:
    return torch.as_tensor(lengths, dtype=torch.int64, device=like.device)


def _states(targets: Tensor, labels: Tensor, blank: int) -> Tensor:
    """Labels with blanks between and around them, [N, 2 S + 1]; blanks after the last of a sample."""
    most = int(labels.max()) if labels.numel() else 0
    place = torch.arange(most, device=labels.device)
    there = place < labels[:, None]
    if targets.dim() == 1:  # one after the other
        index = (labels.cumsum(0) - labels)[:, None] + place
        found = targets[index.clamp(max=max(0, len(targets) - 1))] if len(targets) else index
    else:
        found = targets[:, :most]
    states = torch.full((len(labels), 2 * most + 1), blank, dtype=torch.int64, device=labels.device)
    states[:, 1::2] = torch.where(there, found.to(labels.device).long(), blank)
    return states


def _emitted(log_probs: Tensor, states: Tensor) -> Tensor:
    """[T, N, 2 S + 1]: the logarithm of the probability of what each state emits."""
    return log_probs.gather(2, states[None].expand(log_probs.shape[0], -1, -1))


def _skips(states: Tensor, blank: int) -> Tensor:
    """Whether a state may follow the last but one: a label that is another one than the one before."""
    found = torch.zeros_like(states, dtype=torch.bool)
    found[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return found


def _logsumexp(x: Tensor, dim: int) -> Tensor:
    most = x.amax(dim, keepdim=True)
    most = torch.where(most == -torch.inf, 0.0, most)
    return (x - most).exp().sum(dim).log() + most.squeeze(dim)


def _shifted(x: Tensor, by: int) -> Tensor:
    """States before (by > 0) or after; none where there is none."""
    size = x.shape[1]
    padded = torch.nn.functional.pad(x, (by, 0) if by > 0 else (0, -by), value=-torch.inf)
    return padded[:, :size] if by > 0 else padded[:, -size:]


def _prefixes(emitted: Tensor, skips: Tensor) -> Tensor:
    """[N, T, 2 S + 1]: the logarithm of the probability to be in a state at a time."""
    alpha = torch.full_like(emitted[0], -torch.inf)
    alpha[:, :2] = emitted[0, :, :2]
    found = [alpha]
    for each in emitted[1:]:
        twice = torch.where(skips, _shifted(alpha, 2), -torch.inf)
        alpha = _logsumexp(torch.stack((alpha, _shifted(alpha, 1), twice)), 0) + each
        found.append(alpha)
    return torch.stack(found, 1)


def _suffixes(emitted: Tensor, skips: Tensor, times: Tensor, labels: Tensor) -> Tensor:
    """[N, T, 2 S + 1]: the same of what follows from a state at a time on."""
    state = torch.arange(emitted.shape[2], device=emitted.device)
    final = (state == 2 * labels[:, None]) | (state == 2 * labels[:, None] - 1)
    ahead = torch.nn.functional.pad(skips, (0, 2))[:, 2:]
    beta = torch.full_like(emitted[0], -torch.inf)
    found = []
    for time in range(emitted.shape[0] - 1, -1, -1):
        twice = torch.where(ahead, _shifted(beta, -2), -torch.inf)
        following = _logsumexp(torch.stack((beta, _shifted(beta, -1), twice)), 0)
        start = torch.where(final, 0.0, -torch.inf).to(emitted.dtype)
        beta = torch.where((times - 1 == time)[:, None], start, following) + emitted[time]
        found.append(beta)
    return torch.stack(found[::-1], 1)
