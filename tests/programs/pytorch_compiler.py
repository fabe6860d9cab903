"""Cases of test_compiler.py: the kernels of portable numerics in PyTorch; prints JSON.

python pytorch_compiler.py ENGINE BITS
"""

import contextlib
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch

from programs.guards import SIDES, guarded
from repro.portable.backends import pytorch as backend
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler import instructions
from repro.portable.compiler.pytorch import plan
from repro.portable.definitions import pointwise
from repro.portable.kernels import machine, pairs, products
from repro.portable.kernels import pytorch as compiler
from repro.portable.kernels.pytorch import sums
from repro.portable.library.pytorch import functional, optim

said: list[str] = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
logging.getLogger("repro").addHandler(handler)
machine.SHARE = 2**6
GENERATOR = torch.Generator().manual_seed(0)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def both(function, *tensors: torch.Tensor) -> list[bytes]:
    """Results and gradients without kernels, and then four times with them, between guards."""
    results = []
    for available, side in ((False, ""), *((True, side) for side in (*SIDES, *SIDES))):
        compiler.available = available
        with guards(side) if available else contextlib.nullcontext():
            leaves = [torch.empty_strided(x.shape, x.stride()).copy_(x).requires_grad_() for x in tensors]
            y = function(*leaves)
            y.backward(y.detach() * 0.5)
        results.append(b"".join(each.detach().numpy().tobytes() for each in (y, *(leaf.grad for leaf in leaves))))
    return results


@contextlib.contextmanager
def guards(side: str) -> Iterator[None]:
    """All that is allocated for kernels, and for what they are given here, lies beside a guard."""

    def empty_strided(
        shape: tuple[int, ...], strides: tuple[int, ...], dtype=torch.float32, device="cpu"
    ) -> torch.Tensor:
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        size = (last + 1) * (0 not in shape)
        memory = torch.from_numpy(guarded((size * dtype.itemsize,), np.uint8, side)).view(dtype)
        return memory.as_strided(shape, strides)

    def empty(*shape, dtype=torch.float32, device="cpu") -> torch.Tensor:
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return empty_strided(shape, tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))), dtype)

    with mock.patch.multiple(torch, empty=empty, empty_strided=empty_strided):
        yield


def block(x: torch.Tensor, kernel: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Of most that a network has."""
    y = functional.conv2d(x, kernel, None, stride=2, padding=1)
    y = functional.max_pool2d(functional.gelu(y), 2).flatten(2).movedim(1, -1)
    y = functional.layer_norm(functional.linear(y, weight), 24, scale)
    return functional.scaled_dot_product_attention(y, y, y, is_causal=True)


def threads() -> list[bool]:
    given = numbers(8, 6, 15, 16), numbers(16, 6, 3, 3), numbers(24, 16), numbers(24)
    results = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        results += both(block, *given)
    torch.set_num_threads(1)
    return [each == results[0] for each in results]


SIZES = (36, 32, 1), (4, 608, 2), (132, 64, 3), (256, 2048, 3), (4, products.LONGEST, 1)
"""Rows, terms, and columns, in tiles."""


def products_of_int16() -> list[bool | None]:
    """Against int64, with the largest numbers of both signs in places; None without the instruction."""
    if not pairs.possible():
        return [None]
    results = []
    for rows, terms, tiles in SIZES:
        columns = tiles * products.width()
        assert products.fit((rows, terms), columns, "")
        a, b = (torch.randint(-8192, 8193, shape, generator=GENERATOR) for shape in ((rows, terms), (terms, columns)))
        a[:2], b[:, :4], b[:, 4:8] = 8192, 8192, -8192
        a[2], b[:, 8], b[:: 2 * pairs.PAIRS, 8] = 1, 0, -1  # the lower bits of each part are as large as they can be
        units, more = (
            torch.ldexp(torch.ones(rows, 1), -100 - torch.arange(rows)[:, None] % 40),
            numbers(columns) * 1e-30,
        )
        units[3] = torch.nan
        exact = (a @ b).double()
        rounded = Backend.r32(exact * units.double()), Backend.r32(exact * units.double() + more.double())
        for left in (a.short(), a.short().t().contiguous().t()):
            for right in (b.short(), b.short().t().contiguous().t()):
                results += [torch.equal(sums.multiply(left, right), exact) for _ in range(3)]
                for expected, *finish in zip(rounded, [units.double()] * 2, (None, more), strict=True):
                    y = sums.multiply(left, right, *finish)
                    results.append(torch.equal(*(each.nan_to_num(7).view(torch.int32) for each in (y, expected))))
    return results


def products_of_any_size() -> list[bool | None]:
    """Against int64, of matrices one after another that lie apart, with tiles that are not full."""
    if not pairs.possible():
        return [None]
    results = []
    for rows, terms, columns in ((4, 2, 1), (5, 33, 7), (36, 70, 50), (12, 9, 96)):
        a, b = (
            torch.randint(-8192, 8193, (2, *shape, 3), generator=GENERATOR)
            for shape in ((rows, terms), (columns, terms))
        )
        a, b = (each.short().permute(0, 3, 1, 2) for each in (a, b))
        for left in (a, a.contiguous(), a.mT.contiguous().mT):
            others = b.mT, b.mT.contiguous(), b.contiguous().mT
            results += [
                torch.equal(sums.multiply(left, right), (left.long() @ right.long()).double()) for right in others
            ]
    return results


def refused() -> list[bool | None]:
    """Tests that products are refused that are no tiles where they are rounded, or too long; None without the instruction."""
    if not pairs.possible():
        return [None]
    width = products.width()
    units = torch.ones(4, 1, dtype=torch.float64)
    results = []
    for terms, columns, *finish in (32, width // 2, units), (33, width - 1, units), (products.LONGEST + 2, width):
        shapes = (4, terms), (terms, columns)
        results.append(raised(sums.multiply, *(torch.zeros(shape, dtype=torch.int16) for shape in shapes), *finish))
    given = products.Product(4, 16, width // 2, True, 0), products.Product(6, 16, width, False, 0)
    results += [raised(products.product, each) for each in given]
    return ["panels" in each for each in results]


def raised(function: Callable, *arguments) -> str:
    """The message of the ValueError, if there is one."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return ""


def dense() -> list[bool]:
    """A layer that kernels of int16 compute, where there is one, and its gradients; inputs lie by columns, too."""
    result = []
    for x in (numbers(6, 11, 32), *(numbers(32, rows).t() for rows in (2, 6, 36))):
        results = both(functional.linear, x, numbers(64, 32), numbers(64))
        result += [each == results[0] for each in results]
    if pairs.possible():
        a, b = torch.empty(66, 32), torch.empty(64, 32)
        assert (Backend.kind(a, b, 0, 1, "") == torch.int16) == (Backend.engine == "int16")
        longest = products.LONGEST
        assert products.fit((longest, 32), 64, "") and not products.fit((longest + 2, 32), 64, "")
        with mock.patch.object(torch.compiler, "is_compiling", return_value=True):
            assert Backend.kind(a, b, 0, 1, "") != torch.int16  # torch.compile can make nothing of our kernels
    return result


def total(backend, x):
    return backend.sum(backend.integer(x), (-1,))


def empty() -> list[bool]:
    """Kernels over spaces without an element, along different axes."""
    compiler.available, result = True, []
    for side in SIDES:
        for shape in ((0, 3), (3, 0), (4, 0, 3)):
            with guards(side):
                x = torch.empty_strided(shape, tuple(range(len(shape), 0, -1)))
                for _ in range(3):
                    (y, *_), z = plan.run(pointwise.relu.forward, x), plan.run(total, x)
            result += [y.shape == x.shape, torch.equal(z, torch.zeros(*shape[:-1], 1, dtype=torch.float64))]
    return result


def pieces(backend, x, other):
    """Views of what is given and of what kernels make: read by kernels, products and PyTorch, and returned."""
    twice = backend.f64(x) * 2.0
    turned = backend.transpose(twice)[1:]
    integers = backend.rint(turned * 4.0)
    product = backend.matmul(backend.transpose(integers)[None], backend.rint(backend.f64(other))[None])
    return (
        turned,
        backend.transpose(x)[:2, 1:],
        backend.sum(turned[:, ::2], (0,)),
        backend.concatenate([turned, turned * 3.0], 0),
        backend.reshape(product, (-1,)),
        product[0, 1:] + 1.0,
    )


def views() -> list[bool]:
    """A plan with views, of numbers that it was not tried with."""
    plan._plans.clear()
    compiler.available, result = True, []
    for count in (1, 5):
        torch.set_num_threads(count)
        for side in SIDES:
            for _ in range(4):
                given = numbers(6, 10)[:, ::2], numbers(4, 3)
                expected = pieces(Backend, *given)
                with guards(side):
                    result += [a.equal(b) for a, b in zip(plan.run(pieces, *given), expected, strict=True)]
    torch.set_num_threads(1)
    return [*result, *(each is not None and each.sound for each in plan._plans.values())]


def traced() -> list[bool]:
    """Convolutions as torch.compile traces them, before it makes code of them, and as they are."""
    result = []
    for size, stride in ((1, 2), (3, 1)):
        given = numbers(2, 32, 6, 6), numbers(40, 32, size, size)
        results = []
        for function in (functional.conv2d, torch.compile(functional.conv2d, backend="aot_eager_decomp_partition")):
            leaves = [tensor.clone().requires_grad_() for tensor in given]
            y = function(leaves[0], leaves[1], None, stride)
            y.backward(y.detach() * 0.5)
            results.append([y.detach(), *(leaf.grad for leaf in leaves)])
        result += [torch.equal(*each) for each in zip(*results, strict=True)]
    return result


def shapes() -> dict[str, list[int]]:
    """The number of plans after calls with ever other shapes, and after the same again."""
    plan._plans.clear()
    results = {}
    for name in ("other", "same"):
        for rows in range(1, 6):
            plan.run(pointwise.relu.forward, numbers(rows, 3))
        results[name] = [len(plan._plans), sum(each is not None for each in plan._plans.values())]
    return results


def unsound() -> dict[str, object]:
    """Kernels that do not round: they are detected, and not used."""
    plan._plans.clear()
    x, scale = numbers(64, 8), numbers(8)

    def multiply(x):
        return functional._affine(x, scale, scale)

    with mock.patch.dict(instructions.TABLE, r32=lambda build, x: build.fadd(x, x)):
        result = both(multiply, x)
    sound = [each.sound for each in plan._plans.values() if each]
    return {"same": [each == result[0] for each in result], "sound": sound, "said": sorted(set(said))}


def rates() -> int:
    """Plans of an optimizer whose rate is another one at each step."""
    plan._plans.clear()
    compiler.available = True
    weight = torch.nn.Parameter(numbers(5, 7))
    optimizer = optim.AdamW([weight], weight_decay=0.1)
    for step in range(6):
        weight.grad = numbers(5, 7)
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.step()
    return len(plan._plans)


def tried() -> list[bool]:
    """NaN, of whatever payload, counts as NaN where a plan is tried; other bits do not."""
    x = torch.tensor([1.0, float("nan")])
    other = torch.tensor([0x3F800000, -1], dtype=torch.int32).view(torch.float32)
    return [plan._same(x, other), plan._same(x, -x), plan._same(torch.tensor([0.0]), torch.tensor([-0.0]))]


if __name__ == "__main__":
    torch.set_num_threads(1)
    Backend.engine = sys.argv[1]
    machine.limit(int(sys.argv[2]))
    backend.LEAST_WORK = backend.LEAST_OUTPUTS = 0  # small products, too, are made by this engine
    answers = [
        threads,
        products_of_int16,
        products_of_any_size,
        refused,
        dense,
        empty,
        views,
        traced,
        shapes,
        unsound,
        rates,
        tried,
    ]
    print(json.dumps({each.__name__: each() for each in answers}))
