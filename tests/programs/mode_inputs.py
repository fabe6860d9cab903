"""Bad and unusual arguments under the mode: prints as JSON what comes of them."""

import json
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import repro.portable.pytorch as portable
from programs import conversion_cases
from programs.shape_cases import CASES, results

NAN, INF = math.nan, math.inf
o, e = torch.ones, torch.empty


def integers(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.long)


def twice() -> None:
    loss = o(2, requires_grad=True).tanh().sum()
    loss.backward()
    loss.backward()


WRONG: dict[str, Callable[[], Any]] = {
    "an axis of a sum": lambda: o(2, 2).sum(5),
    "an axis twice": lambda: o(2, 2).sum((0, 0)),
    "an axis of a mean": lambda: o(2, 2).mean(-3),
    "an axis of a norm": lambda: o(2, 2).norm(dim=2),
    "an axis of a running sum": lambda: o(2, 2).cumsum(2),
    "shapes of a product": lambda: o(2, 2) @ o(3, 2),
    "types of a product": lambda: o(1, 4) @ o(4, 1).double(),
    "halves in a product": lambda: o(2, 2) @ o(2, 2).half(),
    "types of a sum of a product": lambda: torch.addmm(o(2).double(), o(2, 2), o(2, 2)),
    "channels": lambda: F.conv2d(o(1, 2, 4, 4), o(1, 3, 2, 2)),
    "a stride of 0": lambda: F.conv2d(o(1, 2, 4, 4), o(1, 2, 2, 2), stride=0),
    "a kernel larger than its image": lambda: F.conv2d(o(1, 2, 1, 1), o(1, 2, 3, 3)),
    "one value per channel": lambda: F.batch_norm(o(1, 3), None, None, training=True),
    "types of a layer norm": lambda: F.layer_norm(o(2, 3), (3,), o(3).double()),
    "lerp": lambda: torch.lerp(o(2), o(2).double(), 0.5),
    "integers in place": lambda: integers(2).tanh_(),
    "out= of integers": lambda: torch.mm(o(2, 2), o(2, 2), out=integers(2, 2)),
    "a result of an expanded tensor": lambda: o(1).expand(3).tanh_(),
    "a leaf in place": lambda: o(2, requires_grad=True).tanh_(),
    "the largest of nothing": lambda: e(0).max(),
    "scatter_add": lambda: o(2, 2).scatter_add(0, integers(2, 2), o(2, 2).double()),
    "two devices": lambda: torch.tanh(o(2), out=e(2, device="meta")),
    "a norm below 0": lambda: o(2, 2).renorm(-INF, 0, 1.0),
    "a second backward pass": twice,
}


def errors() -> dict[str, str]:
    results = {}
    for name, call in WRONG.items():
        try:
            call()
            results[name] = "no error"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    return results


def text(x: Tensor) -> Any:
    return [str(each) for each in x.tolist()] if x.dim() else str(x.item())


def special_numbers() -> dict[str, Any]:
    rows = torch.tensor([[1.0, 2, NAN], [1, 2, 3], [INF, 1, 1]])
    return {
        "sum": text(rows.sum(1)),
        "product": text((rows @ o(3, 1)).flatten()),
        "products of float64": text((rows.double() @ o(3, 1).double()).flatten()),
        "softmax": text(rows.softmax(1)[:, 2]),
        "masked": text(torch.tensor([-INF, 1, 1]).softmax(0)),
        "tanh": text(torch.tensor([NAN, INF, -INF]).tanh()),
        "exp": text(torch.tensor([NAN, INF, -INF]).exp()),
        "log": text(torch.tensor([NAN, -1, 0, INF]).log()),
        "too large": text(torch.tensor([3e38, 3e38]).sum()),
        "too large a half": text(torch.tensor([6e4, 6e4], dtype=torch.float16).sum()),
    }


def too_long() -> list[str]:
    said = []
    for call in (
        lambda: o(1).expand(2**29 + 1).sum(),
        lambda: o(1, 1).expand(1, 2**27 + 1) @ o(1, 1).expand(2**27 + 1, 1),
    ):
        try:
            call()
        except Exception as error:
            said.append(str(error))
    return said


def nothing() -> dict[str, Any]:
    return {
        "sum": text(e(0).sum()),
        "mean": text(e(0).mean()),
        "product over nothing": text((e(2, 0) @ e(0, 1)).flatten()),
        "linear over nothing": text(F.linear(e(1, 0), e(2, 0), o(2)).flatten()),
        "loss": text(F.cross_entropy(e(0, 3), integers(0))),
        "shapes": [
            list(x.shape)
            for x in (
                e(0, 2) @ e(2, 3),
                F.linear(e(0, 3), o(4, 3), o(4)),
                torch.bmm(e(0, 2, 3), e(0, 3, 4)),
                F.conv2d(e(0, 1, 4, 4), o(2, 1, 3, 3)),
                F.avg_pool2d(e(0, 1, 4, 4), 2),
                F.layer_norm(e(0, 3), (3,)),
                F.batch_norm(e(0, 3), torch.zeros(3), o(3)),
                F.scaled_dot_product_attention(*[e(0, 1, 4, 8)] * 3),
                e(0, 3).softmax(1),
                e(3, 0).softmax(1),
                e(0).cumsum(0),
                e(0).sort()[0],
                e(0).tanh(),
            )
        ],
        "scattered": text(o(2).index_add(0, integers(0), e(0))),
    }


def no_axis() -> list[str]:
    x = torch.tensor(0.5)
    return [text(y) for y in (x.sum(0), x.mean(-1), x.softmax(0), x.cumsum(0), x.norm(), x.sort()[0], x.lerp(x, x))]


# --- memory -----------------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(0),
    "variance": lambda x: x.var(-1),
    "running sum": lambda x: x.cumsum(-1),
    "product": lambda x: x @ x.transpose(0, 1),
    "linear": lambda x: F.linear(x, x[:3]),
    "convolution": lambda x: F.conv1d(x[None], x[None, :, :3]),
    "softmax": lambda x: x.softmax(-1),
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "loss": lambda x: F.cross_entropy(x, integers(len(x))),
    "sort": lambda x: x.sort(-1)[0],
    "index_add": lambda x: torch.zeros(2, x.shape[1]).index_add(0, integers(len(x)), x),
    "addcmul": lambda x: x.addcmul(x, x, value=0.3),
}


def memory() -> dict[str, list[str]]:
    """Functions that give other bits for a view than for a copy of it; twice, as the second call may be compiled."""
    base = (torch.arange(1, 400, dtype=torch.float64) * 0.7548776662466927 % 1).float()
    raw = torch.frombuffer(bytearray(b"\0" + base.numpy().tobytes()), dtype=torch.float32, offset=1)
    views = {
        "expanded": base[:8].expand(6, 8),
        "overlapping": base.as_strided((6, 8), (3, 1)),
        "transposed": base[:48].view(8, 6).t(),
        "strided": base[:192].view(12, 16)[::2, ::2],
        "negative": torch._neg_view(base[:48]).view(6, 8),
        "at an odd address": raw[:396].view(12, 33),
    }
    results = {}
    for name, view in views.items():
        copy = torch.empty(view.shape).copy_(view)
        same = {key: [torch.equal(f(view), f(copy)) for _ in range(2)] for key, f in FUNCTIONS.items()}
        results[name] = [key for key, each in same.items() if not all(each)]
    return results


def remainders() -> list[bool]:
    """Beside Python's own of float64, with quotients that are too large for the type, too; and of integers."""
    results = []
    for dtype, powers in ((torch.float32, 120), (torch.float64, 1000)):
        exponents = (torch.arange(64) * 17 % 23 - 11) * (powers // 11)
        a, b = (torch.randn(64, dtype=dtype) * 2.0 ** exponents.roll(by).to(dtype) for by in (0, 5))
        assert (a / b).isinf().any()
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        left = torch.tensor([math.fmod(*pair) for pair in pairs], dtype=dtype)
        down = torch.where((left != 0) & ((left < 0) != (b < 0)), left + b, left)
        exact = (a - left) / b
        whole = torch.where(exact.isfinite(), exact.floor() - (left != down).to(dtype), exact)
        results += [torch.fmod(a, b).equal(left), torch.remainder(a, b).equal(down), a.clone().fmod_(b).equal(left)]
        large = exact.abs() > 2.0**60  # where one less is the same
        for each in (a // b, torch.div(a, b, rounding_mode="floor"), a.clone().div_(b, rounding_mode="floor")):
            results.append(each[large].equal(whole[large]))
    numbers = torch.arange(-4, 5)
    return [
        *results,
        (numbers % 3).equal(numbers - 3 * (numbers // 3)),
        (numbers.float() % 3).equal(numbers.float() % 3.0),
    ]


def conversions() -> list[str]:
    """Conversions to integers with wrong results, by the way in which a program asks for them."""
    numbers = torch.tensor(conversion_cases.NUMBERS, dtype=torch.float64)
    kinds = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
    floats = {source: numbers.to(dtype) for source, dtype in kinds.items()}
    plain = {name: each.double().numpy() for name, each in floats.items()}
    wrong = []
    for way, make in WAYS.items():

        def convert(source: str, target: str) -> Any:
            return make(floats[source].repeat(conversion_cases.COPIES), getattr(torch, target)).numpy()  # noqa: B023

        wrong += [f"{way}: {each}" for each in conversion_cases.wrong(plain, convert)]
    return wrong


def _assigned(x: Tensor, dtype: torch.dtype) -> Tensor:
    result = torch.zeros(x.shape, dtype=dtype)
    result[:] = x
    return result


def _copied_as_list(x: Tensor, dtype: torch.dtype) -> Tensor:
    result = torch.zeros(x.shape, dtype=dtype)
    torch._foreach_copy_([result], [x])
    return result


def _filled(x: Tensor, dtype: torch.dtype) -> Tensor:
    first = [torch.zeros((), dtype=dtype).fill_(each) for each in x[: len(x) // conversion_cases.COPIES]]
    return torch.stack(first).repeat(conversion_cases.COPIES)


def _reduced(function: Callable[..., Tensor]) -> Callable[[Tensor, torch.dtype], Tensor]:
    """Sums and products of one number each, of the types of integers that PyTorch adds."""

    def made(x: Tensor, dtype: torch.dtype) -> Tensor:
        adds = dtype.is_signed or dtype == torch.uint8
        return function(x[:, None], 1, dtype=dtype).reshape(x.shape) if adds else x.to(dtype)

    return made


WAYS: dict[str, Callable[[Tensor, torch.dtype], Tensor]] = {
    "to": lambda x, dtype: x.to(dtype),
    "type": lambda x, dtype: x.type(dtype),
    "copy_": lambda x, dtype: torch.zeros(x.shape, dtype=dtype).copy_(x),
    "assignment": _assigned,
    "foreach_copy_": _copied_as_list,
    "fill_": _filled,
    "tensor": lambda x, dtype: torch.as_tensor(x, dtype=dtype),
    "sum": _reduced(torch.sum),
    "prod": _reduced(torch.prod),
    "cumsum": _reduced(torch.cumsum),
    "cumprod": _reduced(torch.cumprod),
    "slice_scatter": lambda x, dtype: torch.zeros(x.shape, dtype=dtype).slice_scatter(x),
    "select_scatter": lambda x, dtype: torch.zeros((1, *x.shape), dtype=dtype).select_scatter(x, 0, 0)[0],
}


def shapes() -> dict[str, Any]:
    """Cases of unusual shapes."""
    return {f"{name}, {dtype}": results(name, dtype) for name in CASES for dtype in (torch.float32, torch.float64)}


def normalized() -> list[bool]:
    """Tests that a layer norm over several axes, and its gradients, are those over one axis."""
    same = []
    for batch in ((), (2,), (2, 3)):
        results = []
        for shape in ((3, 4, 5), (60,)):
            x, weight, bias = (
                torch.linspace(-1, 2, torch.Size(each).numel()).pow(3).view(each).requires_grad_()
                for each in ((*batch, *shape), shape, shape)
            )
            y = F.layer_norm(x, shape, weight, bias)
            factors = torch.linspace(-2, 1, y.numel()).view(y.shape)
            results.append([y, *torch.autograd.grad((y * factors).sum(), (x, weight, bias))])
        same += [a.flatten().equal(b.flatten()) for a, b in zip(*results, strict=True)]
    return same


def places() -> dict[str, list[str]]:
    """Pixels at places that are NaN and infinite, and the gradients of the places and of the image."""
    results = {}
    image = torch.arange(16.0).view(1, 1, 4, 4)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            results[f"{mode} {padding}"] = sampled(image, (0.25,), mode, padding)
    return results | {"volume": sampled(image.view(1, 1, 4, 2, 2), (0.25, 0.5), "bilinear", "zeros")}


def sampled(image: torch.Tensor, rest: tuple[float, ...], mode: str, padding: str) -> list[str]:
    results = []
    for x in (NAN, INF, -INF):
        grid = torch.tensor([x, *rest]).view(1, *[1] * (image.dim() - 2), -1)
        leaves = image.clone().requires_grad_(), grid.requires_grad_()
        y = F.grid_sample(*leaves, mode, padding, align_corners=False)
        of_pixels, of_grid = torch.autograd.grad(y, leaves, torch.ones_like(y))
        results.append(f"{y.item()} {of_grid.flatten().tolist()} {of_pixels.sum().item()}")
    return results


def logits() -> dict[str, Any]:
    """Of numbers on both sides of eps and 1 - eps, and the gradients."""
    results = {}
    for eps in (0.75, 0.25, -0.5, None):
        x = torch.tensor([0.125, 0.5, 0.875, 2.0, NAN], requires_grad=True)
        y = torch.logit(x, eps)
        results[str(eps)] = text(y), text(torch.autograd.grad(y.sum(), x)[0])
    return results | {"integers": text(torch.logit(torch.tensor([0, 1])))}


def renormed() -> dict[str, list[str]]:
    """Rows of large, tiny, infinite and no numbers, and zeros, whose norm may be 1."""
    rows = torch.tensor([[3.0, 4.0], [0.5, 0.5], [2.0**127, 0.0], [0.0, 0.0], [1e-40, 0.0], [INF, 1.0], [NAN, 4.0]])
    return {str(p): [text(row) for row in rows.renorm(p, 0, 1.0)] for p in (0.5, 1, 2, INF)}


if __name__ == "__main__":
    own, own_shapes = errors(), shapes()
    portable.enable()
    ours, our_shapes = errors(), shapes()
    found = {
        "errors": {name: [own[name], ours[name]] for name in WRONG if own[name] != ours[name]},
        "no errors": [name for name in WRONG if own[name] == "no error"],
        "shapes": {name: [own_shapes[name], ours] for name, ours in our_shapes.items() if own_shapes[name] != ours},
        "normalized": normalized(),
        "places": places(),
        "logits": logits(),
        "renormed": renormed(),
        "special numbers": special_numbers(),
        "too long": too_long(),
        "nothing": nothing(),
        "no axis": no_axis(),
        "memory": memory(),
        "remainders": remainders(),
        "conversions": conversions(),
    }
    print(json.dumps(found))
