"""Operations of the mode on a CPU and on another device: the same bits.

    python mode_devices.py [DEVICE]

Prints a line for each operation whose results differ, or that fails on one of them, and in the end how many were compared.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

import repro.portable.pytorch as portable
from repro.fingerprint import fingerprint

UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "sinc",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "tanh",
    "sigmoid",
    "reciprocal",
    "abs",
    "neg",
    "round",
    "floor",
    "sign",
    "frac",
]
ACTIVATIONS = [
    "relu",
    "gelu",
    "silu",
    "mish",
    "elu",
    "selu",
    "celu",
    "softplus",
    "logsigmoid",
    "hardswish",
    "hardsigmoid",
    "leaky_relu",
    "softshrink",
    "tanhshrink",
    "softsign",
    "hardtanh",
    "relu6",
    "glu",
]


def numbers(*shape: int) -> Tensor:
    """Normal numbers of several sizes, zeros among them."""
    x = torch.randn(shape)
    return torch.where(x.abs() < 0.05, 0.0, x * torch.exp2(torch.randint(-6, 6, shape).float()))


def gradients(function: Callable[..., Any], *arrays: Tensor) -> list[Tensor]:
    """Results, and gradients with respect to what is of floating point."""
    arrays = tuple(each.detach().requires_grad_(each.is_floating_point()) for each in arrays)
    result = function(*arrays)
    results = [result] if isinstance(result, Tensor) else [each for each in result if isinstance(each, Tensor)]
    asked = [each for each in arrays if each.requires_grad]
    loss = sum(
        (each * (torch.arange(each.numel(), device=each.device) % 7 - 3).view(each.shape)).sum()
        for each in results
        if each.requires_grad
    )
    more = torch.autograd.grad(loss, asked, allow_unused=True) if isinstance(loss, Tensor) else ()
    return [each.detach() for each in (*results, *more) if each is not None]


Case = tuple[Callable[..., Any], tuple[Tensor, ...]]


def cases() -> Iterator[tuple[str, Callable[..., Any], tuple[Tensor, ...]]]:
    """Name, function and arguments, on the CPU."""
    x = numbers(37, 50)
    for name in UNARY:
        yield name, getattr(torch, name), (x,)
        yield f"{name} of bfloat16", getattr(torch, name), (x.bfloat16(),)
    for name in ACTIVATIONS:
        yield name, getattr(F, name), (x,)
    y, images = numbers(37, 50), numbers(4, 8, 13, 11)
    square = x.abs() + 0.1
    yield (
        "arithmetic",
        lambda a, b: (a + b, a - 3 * b, a * b / 7, a / (b.abs() + 1), torch.add(a, b, alpha=0.3), 2.5 - a),
        (x, y),
    )
    yield (
        "combined",
        lambda a, b: (torch.lerp(a, b, 0.3), torch.addcmul(a, a, b, value=0.7), torch.addcdiv(a, b, b.abs() + 1)),
        (x, y),
    )
    yield "powers", lambda a, b: (a**2, a**3, b**0.5, b**-1.7, b ** a.clamp(-2, 2), 1.5 ** a.clamp(-9, 9)), (x, square)
    yield (
        "remainders",
        lambda a, b: (torch.remainder(a, b), torch.fmod(a, b), torch.floor_divide(a.detach(), b.detach())),
        (x, square),
    )
    yield (
        "two arguments",
        lambda a, b: (torch.atan2(a, b), torch.hypot(a, b), torch.logaddexp(a, b), torch.maximum(a, b)),
        (x, y),
    )
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        a, b = numbers(33, 70).to(dtype), numbers(70, 45).to(dtype)
        yield f"mm of {dtype}", torch.mm, (a, b)
        yield (
            f"sums of {dtype}",
            lambda a: (a.sum(), a.sum(0), a.mean(1), a.var(), a.std(0), a.norm(), a.cumsum(1)),
            (a,),
        )
        yield f"softmax of {dtype}", lambda a: (a.softmax(1), a.log_softmax(0), torch.logsumexp(a, 1)), (a,)
        yield f"layer_norm of {dtype}", lambda a, w, b: F.layer_norm(a, (70,), w, b), (a, a[0].clone(), a[1].clone())
    yield "linear", F.linear, (numbers(5, 33, 64), numbers(96, 64), numbers(96))
    yield "bmm", torch.bmm, (numbers(3, 9, 17), numbers(3, 17, 8))
    yield (
        "baddbmm",
        lambda *a: torch.baddbmm(*a, beta=0.5, alpha=0.3),
        (numbers(3, 9, 8), numbers(3, 9, 17), numbers(3, 17, 8)),
    )
    kernel = numbers(6, 8, 3, 3)
    yield "conv2d", lambda a, w, b: F.conv2d(a, w, b, stride=2, padding=1), (images, kernel, numbers(6))
    yield (
        "conv2d in groups",
        lambda a, w: F.conv2d(a, w, padding=2, dilation=2, groups=4),
        (images, numbers(12, 2, 3, 3)),
    )
    yield "large conv2d", lambda a, w: F.conv2d(a, w, padding=1), (numbers(4, 32, 16, 16), numbers(64, 32, 3, 3))
    yield "conv1d", lambda a, w: F.conv1d(a, w, stride=2), (numbers(4, 8, 30), numbers(5, 8, 4))
    yield "conv3d", lambda a, w: F.conv3d(a, w, padding=1), (numbers(2, 3, 6, 7, 5), numbers(4, 3, 3, 3, 3))
    yield (
        "conv_transpose2d",
        lambda a, w: F.conv_transpose2d(a, w, stride=2, output_padding=1),
        (images, numbers(8, 5, 3, 3)),
    )
    scale, shift = numbers(8), numbers(8)
    yield "batch_norm", lambda a, w, b: F.batch_norm(a, None, None, w, b, True), (images, scale, shift)
    yield (
        "batch_norm in evaluation",
        lambda a, m, v, w, b: F.batch_norm(a, m.detach(), v.detach(), w, b),
        (images, shift, scale.abs(), scale, shift),
    )
    yield "group_norm", lambda a, w, b: F.group_norm(a, 4, w, b), (images, scale, shift)
    yield "rms_norm", lambda a, w: F.rms_norm(a, (50,), w), (x, x[0].clone())
    yield (
        "attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        tuple(numbers(2, 3, 17, 16) for _ in range(3)),
    )
    labels = torch.arange(37) % 50
    yield "cross_entropy", lambda a: F.cross_entropy(a, labels.to(a.device), label_smoothing=0.1), (x,)
    yield (
        "losses",
        lambda a, b: (
            F.mse_loss(a, b),
            F.smooth_l1_loss(a, b),
            F.huber_loss(a, b),
            F.binary_cross_entropy_with_logits(a, b.sigmoid()),
            F.kl_div(a, b, reduction="sum", log_target=True),
        ),
        (x, y),
    )
    yield "max_pool2d", lambda a: F.max_pool2d(a, 3, 2, 1), (images,)
    yield (
        "pools",
        lambda a: (F.avg_pool2d(a, 3, 2, 1), F.adaptive_avg_pool2d(a, (5, 3)), F.adaptive_max_pool2d(a, 4)),
        (images,),
    )
    for mode in ("nearest", "bilinear", "bicubic"):
        yield f"interpolate {mode}", lambda a, mode=mode: F.interpolate(a, scale_factor=1.7, mode=mode), (images,)
    yield "interpolate antialiased", lambda a: F.interpolate(a, (5, 7), mode="bilinear", antialias=True), (images,)
    place = numbers(4, 6, 5, 2).clamp(-1.2, 1.2)
    for mode in ("bilinear", "nearest", "bicubic"):
        yield (
            f"grid_sample {mode}",
            lambda a, g, mode=mode: F.grid_sample(a, g, mode=mode, align_corners=False),
            (images, place),
        )
    index = torch.randint(0, 20, (37, 50))
    yield "scatter_add", lambda a, i: torch.zeros(37, 20, device=a.device).scatter_add(1, i, a), (x, index)
    yield (
        "scatter_reduce",
        lambda a, i: [
            torch.ones(37, 20, device=a.device).scatter_reduce(1, i, a, kind) for kind in ("sum", "mean", "amax")
        ],
        (x, index),
    )
    yield "index_add", lambda a, i: torch.zeros(20, 50, device=a.device).index_add(0, i[:, 0], a), (x, index)
    yield (
        "index_put",
        lambda a, i: torch.zeros(20, 50, device=a.device).index_put((i[:, 0],), a, accumulate=True),
        (x, index),
    )
    yield "indexing", lambda a, i: (a[i[:, 0]], a.gather(1, i), a.index_select(1, i[0])), (x, index)
    yield "embedding", lambda w, i: F.embedding(i, w), (numbers(20, 6), index)
    yield "embedding_bag", lambda w, i: F.embedding_bag(i, w, mode="mean"), (numbers(20, 6), index)
    few = torch.randint(0, 5, (40, 30)).float()
    yield (
        "ties",
        lambda a: (
            *a.sort(1),
            *a.topk(7, 1),
            a.argmax(1),
            *a.max(0),
            *a.median(1),
            *a.kthvalue(3, 1),
            a.argsort(0, descending=True),
        ),
        (few,),
    )
    yield "unique", lambda a: torch.unique(a.detach(), return_inverse=True, return_counts=True), (few,)
    yield "scans", lambda a: (a.cumsum(0), a.cumprod(1), a.logcumsumexp(1), *a.cummax(0), a.prod(1)), (few / 4 + 0.5,)
    yield (
        "padding",
        lambda a: (F.pad(a, (2, 1, 3, 2), "reflect"), F.pad(a, (2, 1, 3, 2), "replicate"), F.pad(a, (1, 1), value=2.0)),
        (images,),
    )
    yield "cdist", torch.cdist, (numbers(9, 5), numbers(8, 5))
    yield "clipping", lambda a, b: torch.nn.utils.get_total_norm([a, b]), (x, y)
    for name, draw in DRAWS.items():
        yield f"draws: {name}", draw, (torch.zeros(1000),)


DRAWS: dict[str, Callable[[Tensor], Any]] = {
    "uniform_": lambda a: a.clone().uniform_(-1, 2),
    "normal_": lambda a: a.clone().normal_(1, 3),
    "bernoulli_": lambda a: a.clone().bernoulli_(0.3),
    "exponential_": lambda a: a.clone().exponential_(),
    "rand": lambda a: torch.rand(7, 9, device=a.device),
    "randn": lambda a: torch.randn(7, 9, device=a.device),
    "randint": lambda a: torch.randint(0, 99, (50,), device=a.device),
    "randperm": lambda a: torch.randperm(77, device=a.device),
    "dropout": lambda a: F.dropout(a + 1, 0.3),
    "multinomial": lambda a: torch.multinomial(torch.arange(1.0, 50, device=a.device), 20),
}


def computed(function: Callable[..., Any], arguments: tuple[Tensor, ...], device: str) -> str:
    """The fingerprint of results and gradients, or what failed."""
    torch.manual_seed(7)
    try:
        result = gradients(function, *(each.to(device) for each in arguments))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return fingerprint(
        {f"{place:03}": each.nan_to_num(123.0).double().cpu().numpy() for place, each in enumerate(result)}
    )


def main(device: str = "cuda") -> None:
    number = wrong = 0
    with portable.enable():
        torch.manual_seed(0)
        for name, function, arguments in cases():
            first, second = (computed(function, arguments, each) for each in ("cpu", device))
            number += 1
            if first != second or "Error" in first:
                wrong += 1
                print(f"{name}: {first} {second}")
    print(f"{number} operations compared, {wrong} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
