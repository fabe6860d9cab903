"""Functions and modules of the portable PyTorch library, for test_pytorch_library.py, in PyTorch's environment.

Prints what it found, as JSON.
"""

import json
import sys
from typing import Any

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.portable.definitions import attention, convolution, linear, losses, normalization, pointwise, pooling
from repro.portable.definitions.softmax import softmax
from repro.portable.library.autograd.pytorch import apply

CLOSE = 2e-3  # of the largest number: sums of products have 13 bits


def random(*shape: int) -> Tensor:
    return torch.randn(*shape)


def with_gradients(call: Any, arrays: list[Tensor], leaves: list[Tensor]) -> list[Tensor]:
    """The result and the gradients of what needs one."""
    result = call(*arrays)
    torch.manual_seed(1)
    (result * torch.randn(result.shape).to(result.dtype)).sum().backward()
    results = [result.detach(), *(leaf.grad for leaf in leaves)]
    for leaf in leaves:
        leaf.grad = None
    return results


def last(x: Tensor) -> Tensor:
    return x.movedim(1, -1)


def first(x: Tensor) -> Tensor:
    return x.movedim(-1, 1)


def normalized(x: Tensor, axes: tuple[int, ...], batch: bool = False, center: bool = True) -> Tensor:
    return apply(normalization.normalize, x, axes=axes, eps=1e-5, center=center, batch=batch)[0]


def scaled(x: Tensor, m: nn.Module, bias: bool = True) -> Tensor:
    return apply(pointwise.affine, x, m.weight, m.bias if bias else None)


def conv(m: nn.Module, x: Tensor) -> Tensor:
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    return first(apply(convolution.convolution, last(x), m.weight.permute(0, 2, 3, 1), m.bias, **options))


def group_norm(m: nn.Module, x: Tensor) -> Tensor:
    y = normalized(last(x).unflatten(-1, (3, 2)), (1, 2, 4)).flatten(-2)
    return first(scaled(y, m))


def pooled(operation):
    options = {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1)}
    return lambda m, x: first(apply(operation, last(x), **options))


def activation(name: str):
    return lambda m, x: apply(pointwise.activation, x, name=name)


def multihead(m: nn.Module, x: Tensor) -> Tensor:
    q, k, v = (
        part.unflatten(-1, (2, 4)).transpose(1, 2)
        for part in apply(linear.linear, x, m.in_proj_weight, m.in_proj_bias).chunk(3, -1)
    )
    y = apply(attention.attention, q, k, v, None, causal=True, scale=None)
    return apply(linear.linear, y.transpose(1, 2).flatten(2), m.out_proj.weight, m.out_proj.bias)


def called(m: nn.Module) -> Any:
    """The module, of one input."""

    def causally(x: Tensor) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return m(x, x, x, attn_mask=later, need_weights=False)[0]

    return causally if isinstance(m, nn.MultiheadAttention) else m


CASES: dict[str, Any] = {
    # PyTorch's module, its arguments, what goes in, and what it is by the definitions
    "Linear": ((7, 4), lambda: random(3, 5, 7), lambda m, x: apply(linear.linear, x, m.weight, m.bias)),
    "Conv2d": ((6, 4, (3, 2), (2, 1), (1, 2), (1, 2), 2), lambda: random(3, 6, 9, 8), conv),
    "Embedding": ((9, 4, 2), lambda: torch.tensor([[1, 2, 1], [8, 0, 0]]), None),
    "MultiheadAttention": ((8, 2, 0.0, True, False, False, None, None, True), lambda: random(3, 5, 8), multihead),
    "LayerNorm": ((8,), lambda: random(3, 5, 8), lambda m, x: scaled(normalized(x, (-1,)), m)),
    "RMSNorm": ((8, 1e-5), lambda: random(3, 5, 8), lambda m, x: scaled(normalized(x, (-1,), center=False), m, False)),
    "GroupNorm": ((3, 6), lambda: random(3, 6, 5, 4), group_norm),
    "BatchNorm1d": ((6,), lambda: random(9, 6), lambda m, x: scaled(normalized(x, (0,), batch=True), m)),
    "BatchNorm2d": (
        (6,),
        lambda: random(3, 6, 5, 4),
        lambda m, x: first(scaled(normalized(last(x), (0, 1, 2), batch=True), m)),
    ),
    "MaxPool2d": ((3, 2, 1), lambda: random(3, 6, 9, 8), pooled(pooling.max_pool)),
    "AvgPool2d": ((3, 2, 1), lambda: random(3, 6, 9, 8), pooled(pooling.average_pool)),
    "AdaptiveAvgPool2d": (
        (1,),
        lambda: random(3, 6, 9, 8),
        lambda m, x: first(apply(pooling.mean, last(x), axes=(1, 2))),
    ),
    "ReLU": ((True,), lambda: random(3, 6), lambda m, x: apply(pointwise.relu, x)),
    "GELU": (("tanh",), lambda: random(3, 6), activation("gelu_tanh")),
    "SiLU": ((), lambda: random(3, 6), activation("silu")),
    "Tanh": ((), lambda: random(3, 6), activation("tanh")),
    "Sigmoid": ((), lambda: random(3, 6), activation("sigmoid")),
    "Softmax": ((1,), lambda: random(3, 6, 4), lambda m, x: first(apply(softmax, last(x)))),
}


def modules() -> object:
    """The names of portable modules that differ from the definitions, and of those that are far from PyTorch's own."""
    torch.manual_seed(0)
    differ, far = [], []
    for name, (arguments, inputs, defined) in CASES.items():
        own = getattr(nn, name)(*arguments)
        for parameter in own.parameters():
            nn.init.normal_(parameter)
        twin = getattr(portable, name)(*arguments)
        twin.load_state_dict(own.state_dict())
        x = inputs()
        if x.is_floating_point():
            x.requires_grad_()
        given = [x] if x.is_floating_point() else []
        gradients = with_gradients(called(twin), [x], [*given, *twin.parameters()])
        if defined is not None:
            expected = with_gradients(lambda x: defined(twin, x), [x], [*given, *twin.parameters()])  # noqa: B023
            differ += [name] * (not all(map(torch.equal, gradients, expected)))
        wide = x.detach().double().requires_grad_() if given else x
        exact = with_gradients(called(own.double()), [wide * 1], [*([wide] if given else []), *own.parameters()])
        far += [
            f"{name} {place}"
            for place, (a, b) in enumerate(zip(gradients, exact, strict=True))
            if a.dtype != torch.float32 or not (a - b).abs().max() <= CLOSE * b.abs().max()
        ]
        # what the running statistics became, too
        buffers = zip(twin.buffers(), own.buffers(), strict=True)
        far += [name for a, b in buffers if not torch.allclose(a.double(), b.double(), atol=1e-5)]
    return {"differ": differ, "far": far, "modules": len(CASES)}


def rotated(x: Tensor) -> Tensor:
    """Rotary positions by PyTorch's functions."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half).double() / half)
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), -1)


def functions() -> object:
    """The same of what has no module of one input."""
    torch.manual_seed(0)
    functional, own = portable.functional, nn.functional
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    labels, many = torch.randint(6, (9,)), torch.randint(6, (9, 4))
    q, k, v = random(3, 2, 5, 8), random(3, 2, 7, 8), random(3, 2, 7, 6)
    logits, x, target = random(9, 6), random(4, 6), random(4, 6)
    running, images = [random(6), random(6).exp()], random(3, 6, 5, 4)
    evaluated = lambda x: first(apply(normalization.normalize_by, last(x), *running, eps=1e-5))  # noqa: E731
    wide = [each.double() for each in running]
    cases: dict[str, Any] = {
        "attention": (
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, mask, scale=0.3),
            lambda *x: apply(attention.attention, *x, mask, causal=False, scale=0.3),
            lambda *x: own.scaled_dot_product_attention(*x, mask, scale=0.3),
            [q, k, v],
        ),
        "cross_entropy": (
            lambda x: functional.cross_entropy(x, labels, label_smoothing=0.1),
            lambda x: apply(losses.cross_entropy, x, labels, smoothing=0.1),
            lambda x: own.cross_entropy(x, labels, label_smoothing=0.1),
            [logits],
        ),
        "cross_entropy of rows": (
            lambda x: functional.cross_entropy(x, many),
            lambda x: apply(losses.cross_entropy, last(x).flatten(0, 1), many.flatten(), smoothing=0.0),
            lambda x: own.cross_entropy(x, many),
            [random(9, 6, 4)],
        ),
        "mse_loss": (functional.mse_loss, lambda *x: apply(losses.mse, *x), own.mse_loss, [x, target]),
        "batch_norm": (
            lambda x: functional.batch_norm(x, *running),
            evaluated,
            lambda x: own.batch_norm(x, *wide),
            [images],
        ),
        "add": (functional.add, lambda *x: apply(pointwise.add, *x), torch.add, [x, target]),
        "rotary": (functional.rotary, lambda x: apply(pointwise.rotate, x, base=10000.0), rotated, [random(2, 3, 8)]),
        "conv2d": (
            lambda x, w: functional.conv2d(x, w, padding="same"),
            None,
            lambda x, w: own.conv2d(x, w, padding="same"),
            [images, random(2, 6, 3, 5)],
        ),
        "conv2d with even kernels": (
            lambda x, w: functional.conv2d(x, w, padding="same", dilation=(1, 3)),
            None,
            lambda x, w: own.conv2d(x, w, padding="same", dilation=(1, 3)),
            [images, random(2, 6, 2, 4)],
        ),
        "layer_norm": (
            lambda x, b: functional.layer_norm(x, (5, 4), None, b),
            None,
            lambda x, b: own.layer_norm(x, (5, 4), None, b),
            [images, random(5, 4)],
        ),
    }
    differ, far = [], []
    for name, (ours, defined, theirs, arrays) in cases.items():
        leaves = [array.requires_grad_() for array in arrays]
        gradients = with_gradients(ours, leaves, leaves)
        if defined is not None and not all(map(torch.equal, gradients, with_gradients(defined, leaves, leaves))):
            differ.append(name)
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        exact = with_gradients(theirs, doubles, doubles)
        if not all((a - b).abs().max() <= CLOSE * b.abs().max() for a, b in zip(gradients, exact, strict=True)):
            far.append(name)
    return {"differ": differ, "far": far}


def dropouts() -> object:
    """Tests that what is dropped follows from seed, stream and step alone."""
    x = torch.ones(8, 16, 4, 4)
    one, other = portable.Dropout(0.25, seed=7, stream=1), portable.Dropout(0.25, seed=7, stream=2)
    first_call, second_call = one(x), one(x)
    expected = apply(pointwise.dropout, x, torch.tensor(7 + 2**32), torch.tensor(1), rate=0.25, rows=False)
    channels = portable.Dropout2d(0.5, seed=7, stream=1)(x).flatten(2)
    return {
        "of the definition": torch.equal(second_call, expected),
        "same at each call": torch.equal(first_call, second_call),
        "same in each stream": torch.equal(first_call, other(x)),
        "kept": float((first_call > 0).float().mean()),
        "whole channels": bool(((channels == 0).all(-1) | (channels == 2).all(-1)).all()),
        "evaluated": torch.equal(one.eval()(x), x),
        "step": int(one.step),
    }


def memory() -> object:
    """Results are contiguous where images are, and have channels last where they have."""
    x = random(2, 6, 8, 8)
    layers = (portable.Conv2d(6, 4, 3), portable.MaxPool2d(2), portable.AvgPool2d(2), portable.BatchNorm2d(6))
    pairs = [(layer(x), layer(x.to(memory_format=torch.channels_last))) for layer in layers]
    return [
        a.is_contiguous() and b.is_contiguous(memory_format=torch.channels_last) and torch.equal(a, b) for a, b in pairs
    ]


def copies() -> object:
    """Gradients of three copies are added from the first on."""
    x, gradients = random(64).requires_grad_(), [random(64) * 10.0**power for power in (0, 8, 8)]
    gradients[2] = -gradients[1]  # so that another order gives another sum
    torch.autograd.backward(portable.functional.fan_out(x, 3), gradients)
    first, second, third = gradients
    return [torch.equal(x.grad, (first + second) + third), torch.equal(x.grad, first + (second + third))]


def imports() -> object:
    return sorted(name for name in sys.modules if name.partition(".")[0] in ("hydra", "omegaconf", "rich", "pooch"))


if __name__ == "__main__":
    parts = (modules, functions, dropouts, memory, copies, imports)
    print(json.dumps({part.__name__: part() for part in parts}))
