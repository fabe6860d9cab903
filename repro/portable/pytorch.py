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


def largest(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """max|x| over the dimensions, kept as dimensions of size 1; NaN where x holds one."""
    return torch.maximum(x.amax(dims, keepdim=True), -x.amin(dims, keepdim=True))


def round_to_grid(x: Tensor, most: Tensor, bits: int) -> Tensor:
    """x rounded, half to even, to the grid of `bits` bits for magnitudes up to `most`; see scales."""
    scale, back = scales(most, bits)
    return (x * scale).round_().mul_(back)


def scales(most: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """2^(bits - e), which makes the numbers of a grid integers, and 2^(e - bits), where 2^(e-1) <= most < 2^e.

    Made of the bits of `most`: its exponent is e + 1022. Below -LIMIT, e is taken for that; above LIMIT both are NaN.
    """
    exponent = most.clamp(min=2.0 ** -(rules.LIMIT + 1)).view(torch.int64) & (0x7FF << 52)
    back = (exponent + ((1 - bits) << 52)).view(torch.float64)
    back = torch.where(most < 2.0**rules.LIMIT, back, torch.nan)
    return 1 / back, back


def to_state(x: Tensor) -> Tensor:
    """Rounded once to float32; magnitudes below 2^-100, and -0, become +0."""
    return x.masked_fill(x.abs() < rules.TINY, 0.0).float()


# --- layers ---------------------------------------------------------------------------------------------------------


def inputs(images: Tensor) -> Tensor:
    """uint8 [B, H, W] -> float64 [B, 1, H, W]."""
    return (images.double() * rules.SCALE - rules.SHIFT).unsqueeze(1)


def conv(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Valid convolution with bias; see reference.conv."""
    return _Conv.apply(x.permute(1, 2, 3, 0), kernel, bias).permute(3, 0, 1, 2)


def dense(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """[B, I], [O, I], [O] -> [B, O]; see reference.dense."""
    return _Conv.apply(x.T[:, None, None], kernel[:, :, None, None], bias)[:, 0, 0].T


class _Conv(Function):
    """Of images [C, H, W, B], so that a step of the convolution moves whole rows of memory."""

    @staticmethod
    def forward(ctx, x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        _, _, rows, columns = ctx.shape = kernel.shape
        x, ctx.bits = x.contiguous(), operand_bits(kernel[0].numel() + 1)
        most = largest(x, (0, 1, 2)).clamp(min=1)
        weights = torch.cat((kernel.flatten(1), bias[:, None]), 1).double()
        rounded = _weights(weights, ctx.bits)
        ctx.save_for_backward(x, most, weights, rounded)
        result = rounded @ patches(*_inputs(x, most, ctx.bits), rows, columns)
        return result.view(len(bias), x.shape[1] - rows + 1, x.shape[2] - columns + 1, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, most, weights, rounded = ctx.saved_tensors
        outputs, _, rows, columns = ctx.shape
        gradient, x_gradient = gradient.contiguous(), None
        each = largest(gradient, (0, 1, 2))
        if ctx.needs_input_grad[0]:
            bits = operand_bits(outputs * rows * columns)
            rounded = rounded if bits == ctx.bits else _weights(weights, bits)
            kernel = rounded[:, :-1].unflatten(1, ctx.shape[1:])
            x_gradient = spread(round_to_grid(gradient, each, bits), kernel)
        bits = operand_bits(gradient[0].numel() * ranks.size)
        all_each, all_most = ranks.maximum(each.amax(3, keepdim=True), most.amax(3, keepdim=True))
        whole = round_to_grid(gradient, all_each, bits)
        product = whole.flatten(1) @ patches(*_inputs(x, all_most, bits), rows, columns).T
        (total,) = ranks.total(product)
        both = to_state(total)
        return x_gradient, both[:, :-1].view(ctx.shape), both[:, -1]


def _inputs(x: Tensor, most: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """x on its grid, and the number 1 on the same: the input that belongs to the bias."""
    scale, back = scales(most, bits)
    return (x * scale).round_().mul_(back), scale.round().mul_(back)


def _weights(weights: Tensor, bits: int) -> Tensor:
    """Kernel and bias, [O, I * h * w + 1], on their common grid."""
    return round_to_grid(weights, largest(weights, (0, 1)), bits)


def spread(gradient: Tensor, kernel: Tensor) -> Tensor:
    """The gradient of the convolution of x, [I, H, W, B], with [O, I, h, w] with respect to x, of that of its result.

    What overlaps is added; these sums, too, are exact.
    """
    _, inputs, height, width = kernel.shape
    _, rows, columns, batch = gradient.shape
    parts = (kernel.flatten(1).T @ gradient.flatten(1)).view(inputs, height, width, rows, columns, batch)
    total = gradient.new_zeros(inputs, rows + height - 1, columns + width - 1, batch)
    for i in range(height):
        for j in range(width):
            total[:, i : i + rows, j : j + columns] += parts[:, i, j]
    return total


def patches(x: Tensor, one: Tensor, height: int, width: int) -> Tensor:
    """[C, H, W, B] -> [C * height * width + 1, (H - height + 1) * (W - width + 1) * B], and the last row is `one`.

    In the order of a kernel: where each of its elements meets x, and where its bias meets 1.
    """
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    shifted = x.unfold(1, rows, 1).unfold(2, columns, 1).permute(0, 1, 2, 4, 5, 3)  # [C, h, w, rows, columns, B]
    found = x.new_empty(len(x) * height * width + 1, rows, columns, x.shape[3])
    found[:-1].view(shifted.shape).copy_(shifted)
    found[-1] = one[0]
    return found.flatten(1)


def max_pool(x: Tensor) -> Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals."""
    return _MaxPool.apply(x.permute(1, 2, 3, 0)).permute(3, 0, 1, 2)


class _MaxPool(Function):
    """Of images [C, H, W, B]."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        left, right = x[:, :, ::2], x[:, :, 1::2]
        across = torch.maximum(left, right)
        top, bottom = across[:, ::2], across[:, 1::2]
        in_second_row, in_second_column = top < bottom, left < right
        row = torch.stack((~in_second_row, in_second_row), 2)  # [C, H / 2, 2, W / 2, B]
        column = torch.stack((~in_second_column, in_second_column), 3).unflatten(1, (-1, 2))
        ctx.save_for_backward(row.unsqueeze(4) & column)
        return torch.maximum(top, bottom)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> Tensor:
        (chosen,) = ctx.saved_tensors  # [C, H / 2, 2, W / 2, 2, B]
        spread = gradient[:, :, None, :, None].view(torch.int64) & -chosen.long()  # torch.where, six times as fast
        return spread.view(torch.float64).flatten(3, 4).flatten(1, 2)


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
            weights = group["params"]
            momenta = [self.state[weight]["momentum_buffer"] for weight in weights]
            gradient = _flat([weight.grad for weight in weights])
            momentum = to_state(group["momentum"] * _flat(momenta).double() + gradient)
            _unflatten(momentum, momenta)
            _unflatten(to_state(_flat(weights) - group["lr"] * momentum.double()), weights)


def _flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def _unflatten(flat: Tensor, tensors: list[Tensor]) -> None:
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))


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
    """ReproError if this library's matrix product is not exact on integers, on this device."""
    images, kernel, expected, kernel_gradient, images_gradient = rules.check_case()
    x = torch.from_numpy(images.transpose(3, 1, 2, 0).copy()).double().to(device)
    k = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy()).double().to(device)
    meets = patches(x, x.new_zeros(1, 1, 1, 1), 5, 5)
    y = k.flatten(1) @ meets[:-1]
    rules.check("PyTorch's matrix product", y.view(20, 8, 8, 4).permute(3, 1, 2, 0).cpu().numpy(), expected)
    dk = (y.sign() @ meets[:-1].T).view(k.shape)
    rules.check("PyTorch's matrix product", dk.permute(2, 3, 1, 0).cpu().numpy(), kernel_gradient)
    dx = spread(y.sign().view(20, 8, 8, 4), k)
    rules.check("PyTorch's matrix product", dx.permute(3, 1, 2, 0).cpu().numpy(), images_gradient)
