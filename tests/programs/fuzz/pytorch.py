"""Calls of all operations that PyTorch tests itself: its `op_db`, forward and gradients.

The structure of a call, which arguments there are and their shapes, is PyTorch's own sample. It is drawn natively in float64 and
rounded to the type of the call, so that threads and instruction sets do not change the arguments.
"""

import contextlib
import math
import random
import sys
import types
import unittest
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

import repro.portable.pytorch as portable
from programs.fuzz import contents
from programs.fuzz.cases import Array, Case
from programs.fuzz.settings import Setting
from repro.portable.modes.pytorch.dispatcher.dispatch import thread

# torch.testing derives its own test class from that of `expecttest`, which none of the operations needs
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).TestCase = unittest.TestCase  # type: ignore[attr-defined]

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput, UnaryUfuncInfo  # noqa: E402

SAMPLES = {torch.float32: 5, torch.float64: 2, torch.bfloat16: 2, torch.float16: 1, torch.int64: 1}
"""How many of PyTorch's samples are taken of each type of numbers, with --all."""
AMONG = 60
"""The samples that these are taken from."""
RANGE = {False: 400, True: 4000}
"""How many arguments of all magnitudes a function of numbers gets, by --all."""
UNBOUNDED = ("polynomial", "polygamma", "zeta", "jiterator")
"""Parts of the names of functions whose loops are as long as an argument says, or that only a GPU has."""
CRASHES = ("linalg.eig", "linalg.eigvals")
"""Operations whose process PyTorch itself ends, where they are given NaN."""
WITHIN = {"special.log_ndtr": (0, 2.0**11), "polar": (2.0**-100, 2.0**100)}
"""Magnitudes of arguments outside of which gradients by PyTorch's formula have no right digit."""
BASES = ("linalg.svd", "svd")
"""Operations whose vectors are unique in part, up to their sign: values are compared of what PyTorch's tests make of them."""

enabled = contextlib.ExitStack()


def start(setting: Setting) -> None:
    """Sets the number of threads, and whether calls are portable."""
    torch.set_num_threads(setting.threads)
    if setting.double:
        torch.set_default_dtype(torch.float64)  # the type that functions of integers have
    if setting.portable:
        enabled.enter_context(portable.enable())


def cases(everything: bool, only: str) -> Iterator[Case]:
    """All calls; a few of each operation in turns, or everything."""
    for turn, operation in enumerate(op_db):
        if only in name_of(operation):
            drawn = list(_all(operation) if everything else _few(operation, turn))
            yield from drawn


@contextlib.contextmanager
def native() -> Iterator[None]:
    """A context in which operations are PyTorch's own, as in a definition."""
    before, thread.inside = thread.inside, True
    try:
        yield
    finally:
        thread.inside = before


def name_of(operation: OpInfo) -> str:
    return operation.name + (f" {operation.variant_test_name}" if operation.variant_test_name else "")


# --- which calls ------------------------------------------------------------------------------------------------------


def _all(operation: OpInfo) -> Iterator[Case]:
    for dtype, number in SAMPLES.items():
        samples = _samples(operation, dtype)
        step = max(1, len(samples) // number)
        for place in range(0, min(len(samples), step * number), step):
            yield from _both(operation, dtype, "plain", samples[place], place)
        yield from _kinds(operation, dtype, samples, dtype == torch.float32)
        yield from _range(operation, dtype, samples, True)


def _kinds(operation: OpInfo, dtype: torch.dtype, samples: list[SampleInput], every: bool) -> Iterator[Case]:
    """The kinds of contents and layouts, of one sample each."""
    empty = [each for each in samples if any(not x.numel() for x in tensors(each))]
    full = [each for each in samples if any(x.numel() for x in tensors(each))]
    if empty:
        yield from _both(operation, dtype, "empty", empty[len(empty) // 2], 0)
    if full:
        yield from _both(operation, dtype, "strided", full[len(full) // 2], 0)
    if full and every:
        for kind in {*CONTENTS} - {"special"} if operation.name in CRASHES else CONTENTS:
            yield from _both(operation, dtype, kind, full[0], 0)


def _few(operation: OpInfo, turn: int) -> Iterator[Case]:
    types = [each for each in SAMPLES if each in operation.supported_dtypes("cpu")]
    if not types:
        return
    dtype, other = types[turn % len(types)], types[(turn // len(types)) % len(types)]
    samples = _samples(operation, dtype)
    choices = [*_kinds(operation, dtype, samples, dtype.is_floating_point)]
    ranges = [*_range(operation, other, _samples(operation, other), False)]
    plain = [*_both(operation, other, "plain", next(iter(_samples(operation, other)), None), 0)]
    yield from ranges or plain[-1:]
    yield from choices[turn % len(choices) :][:1] if choices else ()


def _both(operation: OpInfo, dtype: torch.dtype, kind: str, sample: SampleInput | None, place: int) -> Iterator[Case]:
    """The call, and its gradients where it has any."""
    if sample is None:
        return
    if sample.kwargs.get("dropout_p"):
        kind = "random"
    name, ways = name_of(operation), [False]
    if operation.supports_autograd and dtype.is_floating_point:
        ways.append(True)
    for gradients in ways:
        text = f"{str(dtype).removeprefix('torch.')} {kind} {place} {'gradients' if gradients else 'forward'}"
        yield Case(
            name, text, _computation(operation, dtype, kind, sample, gradients, f"{name} {dtype} {kind} {place}")
        )


def _range(operation: OpInfo, dtype: torch.dtype, samples: list[SampleInput], everything: bool) -> Iterator[Case]:
    """Arguments of all magnitudes, of a function of one or two numbers."""
    if not samples or not dtype.is_floating_point or any(part in operation.name for part in UNBOUNDED):
        return
    draw = _generator(f"{name_of(operation)} {dtype}")
    dtype_name, size = str(dtype).removeprefix("torch."), RANGE[everything]
    first = samples[0]
    if isinstance(operation, BinaryUfuncInfo):
        x, y = contents.pairs(dtype_name, max(size, 600), draw)
        if operation.name in FLUSHED:
            x = np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.sign(x) * np.finfo(x.dtype).tiny, x)
        sample = SampleInput(_leaf(x), args=(_leaf(y),), kwargs=first.kwargs)
    elif isinstance(operation, UnaryUfuncInfo) or operation.name in FUNCTIONS:
        x = contents.everywhere(dtype_name, size, draw)
        others = () if any(isinstance(each, Tensor) for each in first.args) else first.args
        sample = SampleInput(_leaf(x), args=others, kwargs=first.kwargs)
    else:
        return
    yield from _both(operation, dtype, "range", sample, 0)


def _leaf(x: np.ndarray) -> Tensor:
    return torch.from_numpy(x).requires_grad_()


FLUSHED = ("igamma", "igammac")
"""Functions of which PyTorch takes a first number below 2^-1022 for 0, as no other framework does."""
FUNCTIONS = ("nn.functional.gelu", "nn.functional.hardswish", "nn.functional.leaky_relu")
"""Functions of one number that are not declared as such."""


# --- arguments --------------------------------------------------------------------------------------------------------


def _generator(text: str) -> np.random.Generator:
    """A generator whose seed is a text's."""
    return np.random.Generator(np.random.PCG64(zlib.crc32(text.encode())))


def _samples(operation: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """PyTorch's samples of a type: those of float64 for all floating-point types."""
    taken = torch.float64 if dtype.is_floating_point else dtype
    if dtype not in operation.supported_dtypes("cpu") or taken not in operation.supported_dtypes("cpu"):
        return []
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    with native():
        differentiable = operation.supports_autograd and dtype.is_floating_point
        samples = list(islice(operation.sample_inputs("cpu", taken, requires_grad=differentiable), AMONG))
    for each in samples:
        each.args = tuple(map(_number, each.args))
        each.kwargs = {name: _number(value) for name, value in each.kwargs.items()}
    return samples


def _number(value: Any) -> Any:
    """Numbers of Python rounded as those of tensors; all else as it is."""
    return float(_rounded(np.array(value))) if type(value) is float else value


def tensors(values: Any) -> Iterator[Tensor]:
    """Tensors in a sample, or in results."""
    if isinstance(values, SampleInput):
        values = (values.input, values.args, values.kwargs)
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from tensors(each)
    elif isinstance(values, dict):
        yield from tensors(list(values.values()))


def _special(dtype: str, x: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Numbers of which every third one is special."""
    chosen = draw.choice(contents.special(dtype), x.shape)
    return np.where(draw.integers(0, 3, x.shape) == 0, chosen, x)


CONTENTS: dict[str, Callable[[str, np.ndarray, np.random.Generator], np.ndarray]] = {
    "special": _special,
    "huge": lambda dtype, x, draw: contents.huge(dtype, x.shape, draw),
    "tiny": lambda dtype, x, draw: contents.tiny(dtype, x.shape, draw),
}


def _computation(
    operation: OpInfo, dtype: torch.dtype, kind: str, sample: SampleInput, gradients: bool, seed: str
) -> Callable[[bool], list[Array]]:
    """The function that calls an operation."""

    def compute(double: bool) -> list[Array]:
        draw, leaves = _generator(seed), []
        name, wide = str(dtype).removeprefix("torch."), torch.float64 if double else dtype

        def given(value: Any) -> Any:
            if value == torch.float64 and isinstance(value, torch.dtype):
                return wide
            if not isinstance(value, Tensor) or value.dtype != torch.float64:
                return value.detach().clone() if isinstance(value, Tensor) else value
            numbers = value.detach()
            if kind == "range":
                low, high = WITHIN.get(operation.name, (0, math.inf)) if gradients else (0, math.inf)
                size = numbers.abs()
                numbers = torch.where((size < low) | (size > high), 1.0, numbers)
            elif value.layout == torch.strided:
                numbers = torch.from_numpy(_rounded(numbers.numpy()))
            if kind in CONTENTS and value.layout == torch.strided:
                numbers = torch.from_numpy(np.asarray(CONTENTS[kind](name, numbers.numpy(), draw)))
            return numbers.to(dtype).to(wide, copy=True)

        with native():
            made = sample.transform(given)
            made = made.noncontiguous() if kind == "strided" else made
            wanted = [each.requires_grad for each in tensors(sample)]
            leaves = [
                each.requires_grad_() for each, yes in zip(tensors(made), wanted, strict=True) if gradients and yes
            ]
        torch.manual_seed(0)
        results = operation.op(made.input, *made.args, **made.kwargs)
        outputs = list(tensors(results)) or [torch.tensor(results)]
        if operation.name in BASES:
            outputs = [*tensors(sample.output_process_fn_grad(results)), *map(_bits, outputs)]
        if gradients:
            outputs = [each for each in tensors(sample.output_process_fn_grad(results)) if each.requires_grad]
            with native():
                weights = [_weights(each, dtype, draw) for each in outputs]
            found = torch.autograd.grad(outputs, leaves, weights, allow_unused=True) if outputs and leaves else ()
            outputs = [each for each in found if each is not None]
        with native():
            return [array(each) for each in outputs]

    return compute


def _rounded(x: np.ndarray) -> np.ndarray:
    """Numbers of 32 bits: instruction sets draw the same 52 bits but for the last few."""
    significand, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(significand * 2.0**32), exponent - 32))


def _weights(like: Tensor, dtype: torch.dtype, draw: np.random.Generator) -> Tensor:
    """Gradients of a result: numbers of both signs between 1/2 and 3/2 in magnitude."""
    numbers = torch.from_numpy(np.asarray((0.5 + draw.random(like.shape)) * draw.choice([-1, 1], like.shape)))
    return numbers.to(dtype).to(like.dtype)


def _bits(x: Tensor) -> Tensor:
    """The bits of numbers: of these no values are compared."""
    return x.detach().contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.itemsize])


def array(x: Tensor) -> Array:
    """The numbers of a result."""
    x = x.detach()
    if x.layout != torch.strided:
        x = x.to_dense()
    if x.dtype in (torch.bfloat16, torch.complex32):
        wide = x.to(torch.float32 if x.dtype == torch.bfloat16 else torch.complex64)
        return str(x.dtype).removeprefix("torch."), wide.numpy(force=True)
    return x.numpy(force=True)
