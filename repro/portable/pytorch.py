"""Portable numerics in PyTorch: the operations of reference.py, with gradients, on any device.

Images are [B, C, H, W] and kernels [O, I, h, w], as PyTorch has them; activations are float64, weights float32.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from repro.config import Params
from repro.portable import rules
from repro.portable.rules import operand_bits
from repro.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- grids ----------------------------------------------------------------------------------------------------------


def exponent(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The e with 2^(e-1) <= max|x| < 2^e over the dimensions, int64, kept as dimensions of size 1."""
    return (x.abs().view(torch.int64).amax(dims, keepdim=True) >> 52) - 1022


def round_to_grid(x: Tensor, e: Tensor, bits: int) -> Tensor:
    """x rounded, half to even, to a multiple of 2^(e - bits); NaN where e is above LIMIT."""
    safe = e.clamp(-rules.LIMIT, rules.LIMIT)
    back = power_of_two(safe - bits).masked_fill(e > rules.LIMIT, torch.nan)
    return (x * power_of_two(bits - safe)).round_().mul_(back)


def power_of_two(e: Tensor) -> Tensor:
    """2^e for int64 e in the normal range, made of its bit pattern."""
    return ((e + 1023) << 52).view(torch.float64)


def to_state(x: Tensor) -> Tensor:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return x.masked_fill(x.abs() < rules.TINY, 0.0).float()


# --- layers ---------------------------------------------------------------------------------------------------------


def inputs(images: Tensor) -> Tensor:
    """uint8 [B, H, W] -> float64 [B, 1, H, W]."""
    return (images.double() * rules.SCALE - rules.SHIFT).unsqueeze(1)


def conv(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Valid convolution with bias; see reference.conv."""
    return _Conv.apply(x, kernel, bias)


def dense(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """[B, I], [O, I], [O] -> [B, O]; see reference.dense."""
    return _Conv.apply(x[:, :, None, None], kernel[:, :, None, None], bias)[:, :, 0, 0]


class _Conv(Function):
    @staticmethod
    def forward(ctx, x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, kernel, bias)
        terms = kernel[0].numel() + 1
        rounded, ones = _inputs(x, exponent(x, (1, 2, 3)), terms)
        weights, biases = _weights(kernel, bias, terms)
        return functional.conv2d(rounded, weights) + ones * biases[:, None, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, kernel, bias = ctx.saved_tensors
        x_gradient = None
        if ctx.needs_input_grad[0]:
            terms = kernel[:, 0].numel()
            each = round_to_grid(gradient, exponent(gradient, (1, 2, 3)), operand_bits(terms))
            weights, _ = _weights(kernel, bias, terms)
            x_gradient = functional.conv_transpose2d(each, weights)
        terms = gradient[:, 0].numel() * ranks.size
        e, x_e = ranks.maximum(exponent(gradient, (0, 1, 2, 3)), exponent(x, (0, 1, 2, 3)))
        whole = round_to_grid(gradient, e, operand_bits(terms))
        rounded, ones = _inputs(x, x_e, terms)
        kernel_gradient = torch.nn.grad.conv2d_weight(rounded, kernel.shape, whole)
        bias_gradient = (whole * ones).sum((0, 2, 3))
        kernel_gradient, bias_gradient = ranks.total(kernel_gradient, bias_gradient)
        return x_gradient, to_state(kernel_gradient), to_state(bias_gradient)


def _inputs(x: Tensor, e: Tensor, terms: int) -> tuple[Tensor, Tensor]:
    e = e.clamp(min=1)
    bits = operand_bits(terms)
    return round_to_grid(x, e, bits), round_to_grid(torch.ones_like(e, dtype=torch.float64), e, bits)


def _weights(kernel: Tensor, bias: Tensor, terms: int) -> tuple[Tensor, Tensor]:
    kernel, bias = kernel.double(), bias.double()
    e = torch.maximum(exponent(kernel, (0, 1, 2, 3)).view(1), exponent(bias, (0,)))
    bits = operand_bits(terms)
    return round_to_grid(kernel, e, bits), round_to_grid(bias, e, bits)


def max_pool(x: Tensor) -> Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    return functional.max_pool2d(x, 2)


# --- loss -----------------------------------------------------------------------------------------------------------


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each sample, float64 [B], of logits [B, N] and labels int64 [B]; see reference."""
    return _SoftmaxCrossEntropy.apply(logits, labels)


class _SoftmaxCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits: Tensor, labels: Tensor) -> Tensor:
        coarse, fine = _tables(rules.exp_tables(), logits.device)
        distance = logits.amax(1, keepdim=True) - logits
        steps = (distance.clamp(max=rules.EXP_END) * 2.0**rules.EXP_BITS).round().long()
        steps = steps.clamp(max=2 ** (2 * rules.EXP_SPLIT) - 1)
        product = coarse[steps >> rules.EXP_SPLIT] * fine[steps & (2**rules.EXP_SPLIT - 1)]
        powers = (product * 2.0**rules.SUM_BITS).round() * 2.0**-rules.SUM_BITS
        total = powers.sum(1, keepdim=True)
        shares = (powers * (1 / total) * 2.0**rules.SUM_BITS).round() * 2.0**-rules.SUM_BITS
        own = functional.one_hot(labels, logits.shape[1])
        ctx.save_for_backward(shares - own)

        coarse, fine = _tables(rules.log_tables(logits.shape[1]), logits.device)
        index = (total * 2.0**rules.LOG_COARSE_BITS).floor()
        ratio = total / (index * 2.0**-rules.LOG_COARSE_BITS)
        rest = ((ratio - 1) * 2.0**rules.LOG_FINE_BITS).round().long()
        log_total = coarse[index.long() - 2**rules.LOG_COARSE_BITS] + fine[rest]
        on_grid = (distance * 2.0**rules.LOSS_BITS).round() * 2.0**-rules.LOSS_BITS
        return log_total[:, 0] + on_grid.gather(1, labels[:, None])[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        (own,) = ctx.saved_tensors
        return gradient[:, None] * own, None


def _tables(tables, device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(table).to(device) for table in tables]


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over the batch, float64: an exact sum, times 1 / B."""
    loss = total_loss(logits, labels)
    (everywhere,) = ranks.total(loss.detach())
    return (loss + (everywhere - loss.detach())) * (1.0 / (len(labels) * ranks.size))  # sums of losses are exact


def total_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum over the batch, float64, exact."""
    return softmax_cross_entropy(logits, labels).sum()


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer(params: Params, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    constants = {"lr": rules.as_float32(params.learning_rate), "momentum": rules.as_float32(params.momentum)}
    return (_Adam if params.optimizer == "adam" else _Sgd)(weights, constants)


class _Sgd(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                momentum = self.state[weight]["momentum_buffer"]
                momentum.copy_(to_state(group["momentum"] * momentum.double() + weight.grad))
                weight.copy_(to_state(weight - group["lr"] * momentum.double()))


class _Adam(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                first, second = state["exp_avg"], state["exp_avg_sq"]
                (corrections,) = _tables([rules.adam_corrections()], weight.device)
                correction = corrections[state["step"].long().clamp(max=len(corrections) - 1)]
                state["step"] += 1
                g = weight.grad.double()
                first.copy_(to_state(rules.BETA1 * first.double() + (1 - rules.BETA1) * g))
                square = to_state(g * g).double()
                second.copy_(to_state(rules.BETA2 * second.double() + (1 - rules.BETA2) * square))
                root = (second.double() * correction[1]).sqrt()
                step = to_state(first.double() * correction[0] / (root + rules.EPSILON))
                weight.copy_(to_state(weight - group["lr"] * step.double()))


# --- self-check -----------------------------------------------------------------------------------------------------


def self_check(device: torch.device) -> None:
    """ReproError if this library's convolution or its gradients are not exact on integers, on this device."""
    images, kernel, expected, kernel_gradient, images_gradient = rules.check_case()
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).double().to(device)
    k = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy()).double().to(device)
    y = functional.conv2d(x, k)
    rules.check("PyTorch's conv2d", y.permute(0, 2, 3, 1).cpu().numpy(), expected)
    dk = torch.nn.grad.conv2d_weight(x, k.shape, y.sign())
    rules.check("PyTorch's conv2d_weight", dk.permute(2, 3, 1, 0).cpu().numpy(), kernel_gradient)
    dx = functional.conv_transpose2d(y.sign(), k)
    rules.check("PyTorch's conv_transpose2d", dx.permute(0, 2, 3, 1).cpu().numpy(), images_gradient)
