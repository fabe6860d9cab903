"""Portable numerics in PyTorch: the operations of reference.py, with gradients, on any device.

Images are [B, C, H, W] and kernels [O, I, h, w], as PyTorch has them; activations are float64, weights float32.
"""

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from repro.portable import rules
from repro.portable.pytorch.convolution import patches, product, spread, weights_gradient
from repro.portable.pytorch.grids import largest, round_to_grid, tables, to_state
from repro.portable.pytorch.optimizers import optimizer as optimizer  # one of the operations
from repro.portable.rules import operand_bits
from repro.run.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- layers -----------------------------------------------------------------------------------------------------------


def inputs(images: Tensor) -> Tensor:
    """uint8 [B, H, W] -> float64 [B, 1, H, W]."""
    batch_last = images.permute(1, 2, 0).contiguous()
    return (batch_last.double() * rules.SCALE - rules.SHIFT).permute(2, 0, 1).unsqueeze(1)


def conv(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Valid convolution with bias; see reference.conv."""
    return _Conv.apply(x, kernel, bias)


def dense(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """[B, I], [O, I], [O] -> [B, O]; see reference.dense."""
    return _Conv.apply(x.view(*x.shape, 1, 1), kernel.view(*kernel.shape, 1, 1), bias).flatten(1)


class _Conv(Function):
    """Inside, images are [H, C, W, B] and kernels [O, h, I * w + 1]: a row of the result is one matrix product.

    The batch is last so that a step of the convolution moves whole rows of memory. The last column of a kernel is its
    bias, for its first row, and 0 for the others; the input that belongs to it is 1.
    """

    @staticmethod
    def forward(ctx, x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        height = kernel.shape[2]
        ctx.image, ctx.kernel = x.shape, kernel.shape
        x = torch.cat((x.permute(2, 1, 3, 0).flatten(0, 2), x.new_ones(1, len(x))))  # [H * C * W + 1, B]
        biases = functional.pad(bias[:, None, None], (0, 0, 0, height - 1))
        weights = torch.cat((kernel.transpose(1, 2).flatten(2), biases), 2).double()
        ctx.bits = operand_bits(kernel[0].numel() + 1)
        most, rounded = largest(x, 0), _weights(weights, ctx.bits)
        ctx.save_for_backward(x, most, weights, rounded)
        result = product(patches(round_to_grid(x, most, ctx.bits), ctx.image, ctx.kernel), rounded)
        return result.unflatten(2, (-1, x.shape[1])).permute(3, 1, 0, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, most, weights, rounded = ctx.saved_tensors
        outputs, inputs, height, width = ctx.kernel
        gradient, x_gradient = gradient.permute(2, 1, 3, 0).contiguous(), None
        shape, gradient = (*gradient.shape[:2], -1), gradient.flatten(0, 2)
        each = largest(gradient, 0)
        if ctx.needs_input_grad[0]:
            bits = operand_bits(outputs * height * width)
            rounded = rounded if bits == ctx.bits else _weights(weights, bits)
            x_gradient = spread(round_to_grid(gradient, each, bits).view(shape), rounded, ctx.image, ctx.kernel)
        bits = operand_bits(gradient.numel() // outputs * ranks.size)
        all_each, all_most = ranks.maximum(each.amax(1, keepdim=True), most.amax(1, keepdim=True))
        meets = patches(round_to_grid(x, all_most, bits), ctx.image, ctx.kernel)
        (total,) = ranks.total(weights_gradient(round_to_grid(gradient, all_each, bits).view(shape), meets))
        both = to_state(total).view(weights.shape)
        return x_gradient, both[:, :, :-1].unflatten(2, (inputs, width)).transpose(1, 2), both[:, 0, -1]


def _weights(weights: Tensor, bits: int) -> Tensor:
    """Kernel and bias on their common grid."""
    return round_to_grid(weights, largest(weights, (0, 1, 2)), bits)


def max_pool(x: Tensor) -> Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals.

    Inside, pairs of rows, with their channels side by side, are the images, and the batch is their channels: PyTorch
    pools fastest where channels are last in memory.
    """
    batch, channels, rows, columns = x.shape
    pairs = x.permute(2, 0, 1, 3).reshape(rows // 2, 2, batch, channels * columns).transpose(1, 2)
    return functional.max_pool2d(pairs, 2).view(rows // 2, batch, channels, columns // 2).permute(1, 2, 0, 3)


# --- loss -------------------------------------------------------------------------------------------------------------


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each sample, float64 [B], of logits [B, N] and labels int64 [B]; see reference."""
    return _SoftmaxCrossEntropy.apply(logits, labels)


class _SoftmaxCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits: Tensor, labels: Tensor) -> Tensor:
        coarse, fine = tables(rules.exp_tables, logits.device)
        distance = logits.amax(1, keepdim=True) - logits
        steps = (distance.clamp(max=rules.EXP_END) * 2.0**rules.EXP_BITS).round_().long()
        steps.clamp_(max=2 ** (2 * rules.EXP_SPLIT) - 1)
        product = coarse.take(steps >> rules.EXP_SPLIT) * fine.take(steps & (2**rules.EXP_SPLIT - 1))
        powers = _on_grid(product, rules.SUM_BITS)
        total = powers.sum(1, keepdim=True)
        shares = _on_grid(powers * (1 / total), rules.SUM_BITS)
        own = labels[:, None] == torch.arange(logits.shape[1], device=logits.device)
        ctx.save_for_backward(shares.sub_(own.double()))

        coarse, fine = tables(rules.log_tables, logits.device, logits.shape[1])
        index = (total * 2.0**rules.LOG_COARSE_BITS).floor()
        ratio = total / (index * 2.0**-rules.LOG_COARSE_BITS)
        rest = ((ratio - 1) * 2.0**rules.LOG_FINE_BITS).round().long()
        log_total = coarse.take(index.long() - 2**rules.LOG_COARSE_BITS) + fine.take(rest)
        return (log_total + _on_grid(distance.gather(1, labels[:, None]), rules.LOSS_BITS))[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        (own,) = ctx.saved_tensors
        return gradient[:, None] * own, None


def _on_grid(x: Tensor, bits: int) -> Tensor:
    """x rounded, half to even, to multiples of 2^-bits."""
    return (x * 2.0**bits).round_().mul_(2.0**-bits)


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over the batch, float64: an exact sum, times 1 / B."""
    loss = total_loss(logits, labels)
    (everywhere,) = ranks.total(loss.detach())
    return (loss + (everywhere - loss.detach())) * (1.0 / (len(labels) * ranks.size))  # sums of losses are exact


def total_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum over the batch, float64, exact."""
    return softmax_cross_entropy(logits, labels).sum()
