"""Refusals of the portable PyTorch library, for test_pytorch_library.py, in PyTorch's environment.

Prints what it found, as JSON.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import repro.portable.pytorch as portable
from programs.pytorch_forwards import called, converted, line
from repro.portable.library.pytorch import functional, optim


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


class Trusted(portable.Portable, Own):
    pass


class Changed(nn.Linear):
    pass


def refusals() -> object:
    images, weights = torch.randn(2, 3, 4, 4), [nn.Parameter(torch.ones(2))]
    attention, one = portable.MultiheadAttention(4, 2, batch_first=True), torch.ones(2, 3)
    q, hooked = torch.randn(2, 5, 4), nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *_: None)
    unknown = nn.Sequential(
        nn.LSTM(2, 2),
        Own(),
        Changed(2, 2),
        nn.MaxPool2d(2, ceil_mode=True),
        hooked,
        nn.Linear(2, 2),
        Trusted(),
        nn.Dropout(1.0),
    )
    calls = [
        lambda: functional.conv2d(images, torch.randn(2, 3, 1, 1).half()),
        lambda: functional.conv2d(images, torch.randn(2, 2, 1, 1)),
        lambda: functional.conv2d(images, torch.randn(2, 3, 5, 1)),
        lambda: functional.linear(torch.randn(2, 3), torch.randn(4, 5)),
        lambda: functional.cross_entropy(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)),
        lambda: functional.cross_entropy(torch.zeros(2, 3), torch.tensor([0, -100])),
        lambda: functional.embedding(torch.tensor([3]), torch.randn(3, 2)),
        lambda: functional.mse_loss(torch.randn(2, 3), torch.randn(3)),
        lambda: functional.add(torch.randn(2, 3), torch.randn(3)),
        lambda: functional.scaled_dot_product_attention(q, q, q, attn_mask=torch.zeros(5, 5)),
        lambda: functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1),
        lambda: functional.scaled_dot_product_attention(q[:, :3], q, q, is_causal=True),
        lambda: functional.adaptive_avg_pool2d(images, 2),
        lambda: functional.batch_norm(torch.randn(1, 3), None, None, training=True),
        lambda: functional.dropout(images, 1.0, 0, 0),
        lambda: portable.Conv2d(1, 1, 3, padding_mode="reflect"),
        lambda: portable.BatchNorm2d(3, momentum=None),
        lambda: portable.CrossEntropyLoss(reduction="sum"),
        lambda: portable.Dropout(0.5)(images),
        lambda: optim.SGD(weights, fused=True),
        lambda: optim.Adam(weights, betas=(0.9, 1.0)),
        lambda: optim.AdamW([nn.Parameter(torch.ones(2).double())]),
        lambda: portable.convert(unknown),
        lambda: portable.convert(nn.Sequential(nn.Linear(2, 2).double())),
        lambda: functional.conv2d(images, torch.randn(2, 3, 3, 3), padding="SAME"),
        lambda: functional.conv2d(images, torch.randn(2, 3, 3, 3), padding="same", stride=2),
        lambda: functional.conv2d(images, torch.randn(2, 3, 3, 3), torch.randn(1)),
        lambda: functional.max_pool2d(images, 2, padding="same"),  # type: ignore[arg-type]
        lambda: functional.linear(torch.tensor(1.0), torch.randn(4, 1)),
        lambda: functional.layer_norm(images, (4, 4), torch.randn(4)),
        lambda: functional.group_norm(images, 0),
        lambda: functional.batch_norm(images, torch.zeros(3), torch.ones(1)),
        lambda: functional.softmax(one, 2),
        lambda: functional.embedding(torch.tensor([0]), torch.randn(3, 2), padding_idx=3),
        lambda: functional.cross_entropy(one, torch.tensor([0, 1]), label_smoothing=2.0),
        lambda: functional.dropout(one, 0.5, -1, 0),
        lambda: functional.dropout(one, 0.5, 0, torch.tensor(2**32)),
        lambda: functional.scaled_dot_product_attention(q, q, q, torch.ones(5, 4, dtype=torch.bool)),
        lambda: attention(q, q, q, key_padding_mask=torch.ones(2, 4, dtype=torch.bool)),
    ]
    return [line(call) for call in calls]


# --- tensors that are no plain memory ---------------------------------------------------------------------------------


class Wrapper(Tensor):
    """A tensor in another one's place, as quantized weights are: it has no memory."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "Wrapper":
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, arguments: tuple = (), options: Any = None) -> Any:
        return function(*[each.held if isinstance(each, cls) else each for each in arguments], **(options or {}))


class Named(Tensor):
    """A tensor of another class, with memory."""


class Wrapping(TorchDispatchMode):
    """Makes something else of what PyTorch's functions return."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple = (), options: Any = None) -> Any:
        result = function(*[getattr(each, "held", each) for each in arguments], **(options or {}))
        return Wrapper(result) if isinstance(result, Tensor) and result.dtype == torch.float64 else result


class Watching(TorchDispatchMode):
    """Lets all pass, as a counter of operations does."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: tuple = (), options: Any = None) -> Any:
        return function(*arguments, **(options or {}))


LABELS = torch.arange(12)
WEIGHT, BIAS = torch.randn(5, 12), torch.randn(12)
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: functional.linear(x, WEIGHT),
    "conv2d": lambda x: functional.conv2d(x.view(1, 1, 12, 12), torch.ones(2, 1, 3, 3)),
    "max_pool2d": lambda x: functional.max_pool2d(x.view(1, 1, 12, 12), 2),
    "avg_pool2d": lambda x: functional.avg_pool2d(x.view(1, 1, 12, 12), 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x.view(1, 1, 12, 12), 1),
    "embedding": lambda x: functional.embedding(LABELS, x),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "tanh": functional.tanh,
    "sigmoid": functional.sigmoid,
    "softmax": functional.softmax,
    "add": lambda x: functional.add(x, x),
    "fan_out": lambda x: functional.add(*functional.fan_out(x, 2)),
    "dropout": lambda x: functional.dropout(x, 0.5, 1, 2),
    "rotary": functional.rotary,
    "layer_norm": lambda x: functional.layer_norm(x, 12, BIAS, BIAS),
    "rms_norm": lambda x: functional.rms_norm(x, 12),
    "group_norm": lambda x: functional.group_norm(x, 3),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "cross_entropy": lambda x: functional.cross_entropy(x, LABELS),
    "mse_loss": lambda x: functional.mse_loss(x, x + 1),
}


def memory() -> object:
    x = torch.randn(12, 12)
    parts = torch.complex(x, x)
    negative, plain = parts.conj().imag, torch.empty_like(parts.imag).copy_(parts.conj().imag)
    assert negative.is_neg() and not plain.is_neg() and parts.imag.stride() == negative.stride()
    different = []
    for name, function in FUNCTIONS.items():
        for _ in range(3):  # until there is a plan for these shapes and strides
            function(parts.imag)
            expected = function(plain)
        different += [name] * (not torch.equal(function(negative), expected))
    fake, wrapped, empty = FakeTensorMode(), Wrapper(x), x.clone()
    empty.untyped_storage().resize_(0)
    relu, images, kernel = functional.relu, torch.randn(1, 2, 4, 4), torch.randn(2, 2, 3, 3)
    relu(x), relu(x), functional.conv2d(images, kernel)
    with Watching():
        watched = torch.equal(relu(x), x.clamp(min=0))

    def under(mode: Any, call: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            with mode:
                call()

        return run

    lines = {
        "fake": line(lambda: relu(fake.from_tensor(x))),
        "fake labels": line(lambda: functional.cross_entropy(fake.from_tensor(x), fake.from_tensor(LABELS))),
        "in its mode": line(under(fake, lambda: relu(fake.from_tensor(x)))),
        "wrapper": line(lambda: relu(wrapped)),
        "sparse": line(lambda: relu(x.to_sparse())),
        "without memory": line(lambda: relu(empty)),
        "make_fx": line(lambda: make_fx(relu)(x)),
        "jit": line(lambda: torch.jit.trace(relu, x)),
        "made something else": line(under(Wrapping(), lambda: functional.conv2d(images, kernel))),
    }
    same = [
        torch.equal(relu(x.as_subclass(Named)), relu(x)),
        torch.equal(relu(torch._efficientzerotensor(3)), torch.zeros(3)),
    ]
    return {"different": different, "lines": lines, "same": [*same, watched]}


def weights() -> object:
    """The refusals of weights by optimizers, of 12 numbers in a row of memory, one of which belongs to two of them."""
    memory = torch.zeros(12)
    matrix = memory.view(3, 4)
    cases = {
        "twice": [memory, memory],
        "in part": [memory[:5], memory[4:]],
        "columns": [matrix[:, :2], matrix[:, 1:]],
        "of NumPy": [torch.from_numpy(memory.numpy()), torch.from_numpy(memory.numpy()[6:])],
        "broadcast": [memory[:1].expand(4)],
        "apart": [memory[:5], memory[5:]],
        "columns apart": [matrix[:, :2], matrix[:, 2:]],
        "transposed": [matrix.t()],
    }
    said = {name: line(lambda: optim.SGD([nn.Parameter(each) for each in case])) for name, case in cases.items()}  # noqa: B023
    parameters = [nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))]
    optimizer = optim.Adam(parameters)
    parameters[1].data = parameters[0].data
    said["later"] = line(optimizer.step)
    optimizer = optim.Adam(parameters[:1])
    for option, value in {"betas": (0.9, 1.5), "lr": float("nan")}.items():
        before = optimizer.param_groups[0][option]
        optimizer.param_groups[0][option] = value
        said[option] = line(optimizer.step)
        optimizer.param_groups[0][option] = before
    return said


def second() -> object:
    """Functions whose second derivative is not refused."""
    results = []
    for name, function in FUNCTIONS.items():
        x = torch.randn(12, 12, requires_grad=True)
        for _ in range(3):  # as it is, traced, and by kernels
            total = function(x).sum()
            why = line(lambda: torch.autograd.grad(total, x, create_graph=True))  # noqa: B023
            results += [name] * ("create_graph=True has no portable form" not in why)
    return results


if __name__ == "__main__":
    parts = (refusals, memory, weights, second, called, converted)
    print(json.dumps({part.__name__: part() for part in parts}))
