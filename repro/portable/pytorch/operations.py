"""Portable numerics in PyTorch: the operations of reference.py, with gradients, on any device.

Images are [B, C, H, W] and kernels [O, I, h, w], as PyTorch has them; activations are float64, weights float32.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from repro.native.pytorch.optimizers import Adam, Optimizer
from repro.portable import checks, rules
from repro.portable.rules import operand_bits
from repro.run import layout
from repro.run.config import Params
from repro.run.ranks import ALONE

ranks = ALONE
"""Who shares the batch; the trainer sets it. Sums over samples, and their grids, are of all ranks' samples."""

# --- grids ----------------------------------------------------------------------------------------------------------


def largest(x: Tensor, dims: int | tuple[int, ...]) -> Tensor:
    """max|x| over the dimensions, kept as dimensions of size 1; NaN where x holds one."""
    return torch.maximum(x.amax(dims, keepdim=True), -x.amin(dims, keepdim=True))


def round_to_grid(x: Tensor, most: Tensor, bits: int) -> Tensor:
    """x rounded, half to even, to the grid of `bits` bits for magnitudes up to `most`; NaN where it is above LIMIT."""
    (table,) = _tables(rules.grid_tables, x.device, bits)
    exponent = most.view(torch.int64) >> 52  # negative where `most` is -0: counted from the table's end, it is 0 again
    shift = table.take(exponent)
    return (x + shift).sub_(shift)


def to_state(x: Tensor) -> Tensor:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return functional.hardshrink(x, BELOW_TINY).float()


BELOW_TINY = math.nextafter(rules.TINY, 0)


@cache
def _tables(tables: Callable[..., Iterable[np.ndarray]], device: torch.device, *size: int) -> list[Tensor]:
    return [torch.from_numpy(table).to(device) for table in tables(*size)]


# --- layers ---------------------------------------------------------------------------------------------------------


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


def patches(x: Tensor, image: torch.Size, kernel: torch.Size) -> Tensor:
    """What each row of the result is made of: [H * C * W + 1, B] -> [rows, h * (C * w + 1), columns * B].

    Of images [B, C, H, W] and a kernel [O, C, h, w]. Neighboring rows of the result share memory.
    """
    (batch, channels, rows, columns), (height, width) = image, kernel[2:]
    if rows == columns == 1:
        return x[None]
    size = rows - height + 1, columns - width + 1
    column, channel, row = batch, columns * batch, channels * columns * batch
    shifted = x.as_strided((rows, channels, width, size[1], batch), (row, channel, column, column, 1))
    found = x.new_empty(rows, channels * width + 1, size[1], batch)
    found[:, :-1].view(shifted.shape).copy_(shifted)
    found[:, -1] = x[-1]
    row = found.stride(0)
    return found.as_strided((size[0], height * (channels * width + 1), size[1] * batch), (row, size[1] * batch, 1))


def product(meets: Tensor, weights: Tensor) -> Tensor:
    """The convolution, [rows, O, columns * B], of patches with a kernel."""
    return weights.flatten(1).expand(len(meets), -1, -1) @ meets


def weights_gradient(gradient: Tensor, meets: Tensor) -> Tensor:
    """The gradient with respect to a kernel, [O, h * (C * w + 1)], of that of the result, [rows, O, columns * B]."""
    return (gradient @ meets.transpose(1, 2)).sum(0)


def spread(gradient: Tensor, weights: Tensor, image: torch.Size, kernel: torch.Size) -> Tensor:
    """The gradient with respect to x, [B, C, H, W], of that of the result, [rows, O, columns * B].

    What overlaps is added, along one axis and then the other; these sums, too, are exact.
    """
    (batch, channels, rows, columns), (height, width) = image, kernel[2:]
    if rows == columns == 1:
        return (weights[:, 0, :-1].T @ gradient[0]).T.view(image)
    size = len(gradient), gradient.shape[2]
    across = gradient.new_zeros(rows, channels * width, size[1])
    for i in range(height):
        across[i : i + size[0]].baddbmm_(weights[:, i, :-1].T.expand(size[0], -1, -1), gradient)
    across = across.view(rows, channels, width, size[1])
    total = gradient.new_zeros(rows, channels, columns * batch)
    for j in range(width):
        total[:, :, j * batch : j * batch + size[1]].add_(across[:, :, j])
    return total.unflatten(2, (columns, batch)).permute(3, 1, 0, 2)


def max_pool(x: Tensor) -> Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals.

    Inside, pairs of rows, with their channels side by side, are the images, and the batch is their channels: PyTorch
    pools fastest where channels are last in memory.
    """
    batch, channels, rows, columns = x.shape
    pairs = x.permute(2, 0, 1, 3).reshape(rows // 2, 2, batch, channels * columns).transpose(1, 2)
    return functional.max_pool2d(pairs, 2).view(rows // 2, batch, channels, columns // 2).permute(1, 2, 0, 3)


# --- loss -----------------------------------------------------------------------------------------------------------


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each sample, float64 [B], of logits [B, N] and labels int64 [B]; see reference."""
    return _SoftmaxCrossEntropy.apply(logits, labels)


class _SoftmaxCrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits: Tensor, labels: Tensor) -> Tensor:
        coarse, fine = _tables(rules.exp_tables, logits.device)
        distance = logits.amax(1, keepdim=True) - logits
        steps = (distance.clamp(max=rules.EXP_END) * 2.0**rules.EXP_BITS).round_().long()
        steps.clamp_(max=2 ** (2 * rules.EXP_SPLIT) - 1)
        product = coarse.take(steps >> rules.EXP_SPLIT) * fine.take(steps & (2**rules.EXP_SPLIT - 1))
        powers = _on_grid(product, rules.SUM_BITS)
        total = powers.sum(1, keepdim=True)
        shares = _on_grid(powers * (1 / total), rules.SUM_BITS)
        own = labels[:, None] == torch.arange(logits.shape[1], device=logits.device)
        ctx.save_for_backward(shares.sub_(own.double()))

        coarse, fine = _tables(rules.log_tables, logits.device, logits.shape[1])
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


# --- optimizers -----------------------------------------------------------------------------------------------------


def optimizer(params: Params, weights: dict[str, nn.Parameter]) -> Optimizer:
    """SGD with momentum, or Adam; see reference.sgd and reference.adam."""
    return {"sgd": _Sgd, "adam": _Adam}[params.optimizer](params, weights)


class _Sgd(Optimizer):
    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        rate, decay = rules.as_float32(self.params.learning_rate), rules.as_float32(self.params.momentum)
        (momenta,) = slots
        momentum = to_state(_flat(momenta).double().mul_(decay).add_(_flat(gradients)))
        _unflatten(momentum, momenta)
        _unflatten(to_state(_flat(weights) - rate * momentum.double()), weights)


class _Adam(Adam):
    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        rate, count = rules.as_float32(self.params.learning_rate), self.slots[layout.ADAM_COUNT]
        corrections = _tables(rules.adam_corrections, count.device)
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


# --- self-check -----------------------------------------------------------------------------------------------------


def self_check(device: torch.device) -> None:
    """ReproError if this library computes anything of checks.py with other bits, on this device."""
    images, kernel, *_ = checks.products()
    x = torch.from_numpy(images.transpose(1, 3, 2, 0).reshape(-1, 4)).double().to(device)
    weights = torch.from_numpy(kernel.transpose(3, 0, 2, 1).reshape(20, 5, 50)).double().to(device)
    x, weights = functional.pad(x, (0, 0, 0, 1)), functional.pad(weights, (0, 1))  # no bias
    shapes = torch.Size((4, 10, 12, 12)), torch.Size((20, 10, 5, 5))
    meets = patches(x, *shapes)
    y = product(meets, weights)
    dk = weights_gradient(y.sign(), meets).view(weights.shape)
    found = (
        y.view(8, 20, 8, 4).permute(3, 0, 2, 1),
        dk[:, :, :-1].unflatten(2, (10, 5)).permute(1, 3, 2, 0),
        spread(y.sign(), weights, *shapes).permute(0, 2, 3, 1),
    )
    checks.check_products("PyTorch's matrix product", *(result.cpu().numpy() for result in found))
    given = {
        name: [torch.tensor(array, device=device) for array in arrays] for name, arrays in checks.inputs().items()
    }  # copies, as a step is in place
    operations = {name: [result.cpu().numpy() for result in found] for name, found in _operations(given).items()}
    checks.check_operations("PyTorch", operations)


def _operations(given: dict[str, list[Tensor]]) -> dict[str, Sequence[Tensor]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    loss = softmax_cross_entropy(logits.requires_grad_(), labels.long())
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return {
        "rounding": (to_state(rounding * checks.FACTOR).double() * checks.FACTOR,),
        "maximum": (to_state(maximum * checks.FACTOR).double().amax(1),),
        "grid": (round_to_grid(grid, largest(grid, 1), rules.BITS),),
        "loss": (loss.detach(), gradient),
        "sgd": _updated(_Sgd, checks.SGD, *given["sgd"]),
        "adam": _updated(_Adam, checks.ADAM, *given["adam"]),
    }


def _updated(kind: type[Optimizer], params: Params, weight: Tensor, *slots_and_gradient: Tensor) -> Sequence[Tensor]:
    """The weight and its slots after the step that is checked."""
    *slots, gradient = slots_and_gradient
    parameter = nn.Parameter(weight)
    parameter.grad = gradient
    optimizer = kind(params, {"w": parameter})
    places = [optimizer.slots[layout.slot(slot, "w")] for slot in layout.SLOTS[params.optimizer]]
    for place, slot in zip(places, slots, strict=True):
        place.copy_(slot)
    if layout.ADAM_COUNT in optimizer.slots:
        optimizer.slots[layout.ADAM_COUNT].fill_(checks.ADAM_COUNT)
    optimizer.step()
    return parameter.detach(), *places
