"""Gradients that are exact sums over samples, rounded once: `enable(elastic=True)`.

A kernel that adds over samples in a backward pass gives its sum as parts, see repro.portable.definitions.elastic, and with
them an ordinary tensor, by whose memory they are found again when it arrives at a parameter, whatever views autograd made.
There the parts of all micro-batches since the gradient was zeroed are added, without rounding, and `.grad` is their sum,
rounded. Ranks exchange parts, too: elastic_ranks.py beside this file.

Nothing is left to chance: a gradient that arrives without parts is refused, and so is a sum over samples that was not the
gradient of a parameter. Whatever computes with sums over the batch, as contrastive losses do, is no sum over samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import elastic as definitions
from repro.portable.definitions.elastic import PRODUCT, SUM, Parts
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops
from repro.portable.modes.pytorch.dispatcher.refusal import place
from repro.portable.numbers.constants import BITS

REMEDY = "leave out what samples compute together, or parameters that others are made of, or run without --elastic"
ROWS = 0
"""In the place of a width: the rows of products that are not made yet."""
MOST_ROWS = 64
"""Up to so many rows are multiplied anew for each micro-batch: that moves less memory than to add up their products."""
MORE = {PRODUCT: BITS, SUM: 0}
"""Bits of the other operand, by the width of parts."""
Sums = dict[int, Any]
"""Parts by their width: what is added up of products, and of numbers. Or rows alone, by ROWS."""


@dataclass
class Summed:
    """A sum over samples that is on its way to a parameter."""

    tensor: Tensor
    """The tensor that stands for it: kept, so that nothing else gets its memory."""
    sums: Sums
    must_arrive: bool
    where: str


@dataclass
class Backward:
    """A backward pass that is under way."""

    sums: dict[int, Summed] = field(default_factory=dict)
    """By the memory of their tensors."""
    parameters: set[int] = field(default_factory=set)
    """The memory of the parameters that it reaches."""


@dataclass
class Leaf:
    """What a parameter's gradient is the sum of."""

    before: Sums = field(default_factory=dict)
    """What ranks have exchanged: all hold the same."""
    own: Sums = field(default_factory=dict)
    """What this process has added since."""
    seen: tuple[Callable[[], Tensor | None], int] = (lambda: None, 0)
    """`.grad` after the last backward pass, and its version."""

    def wrote(self, gradient: Tensor) -> bool:
        """True if a gradient is the one of these sums: nobody changed it, or DDP copied it."""
        tensor, version = self.seen
        same_version = gradient._version == version
        return (same_version and gradient is tensor()) or torch.equal(gradient, self.total())

    def plus(self, sums: Sums) -> Tensor:
        """The gradient, float32, when these sums are added to it."""
        rows = [each[ROWS] for each in (self.own, sums) if ROWS in each]
        if len(rows) == len(self.own) + len(sums) and not self.before and sum(len(q) for q, *_ in rows) <= MOST_ROWS:
            self.own = {ROWS: rows[0] if len(rows) == 1 else run(definitions.joined, *rows)}
            return run(definitions.rounded_rows, *self.own[ROWS])
        self.own, sums = made(self.own), made(sums)
        ((width, parts), *others) = sums.items()
        if others or self.before or (self.own and self.own.keys() != {width}):
            self.own = added(self.own, sums)
            return self.total()
        how = {"width": width, "more": MORE[width]}
        if not self.own:
            self.own = sums
            return run(definitions.rounded, parts, **how, times=1.0)
        parts, gradient = run(definitions.added_and_rounded, self.own[width], parts, **how)
        self.own = {width: parts}
        return gradient

    def total(self) -> Tensor:
        """The gradient, float32."""
        first, *others = [_value(sums, width) for sums in (self.before, made(self.own)) for width in sorted(sums)]
        for each in others:
            first = first + each
        return Backend.r32(first)


class Setting:
    """The option, while the mode is on."""

    on = False
    share = 1.0
    """What gradients are multiplied by: one over the number of ranks, a power of two."""
    shared: WeakIdKeyDictionary = WeakIdKeyDictionary()
    """The parameters that ranks share."""


setting = Setting()
passes: list[Backward] = []
"""Backward passes that accumulate gradients, an inner one after an outer one."""
leaves: WeakIdKeyDictionary = WeakIdKeyDictionary()


def wanted() -> bool:
    """True in a backward pass whose sums over samples shall be exact."""
    return bool(passes) and not torch.is_grad_enabled()


def refused(what: str, remedy: str) -> RefusedError:
    where = place()
    return RefusedError(f"portable numerics: --elastic: {what}{where and f' at {where}'}; {remedy}")


# --- what kernels call ------------------------------------------------------------------------------------------------


def is_parameter(x: Tensor) -> bool:
    """True for a parameter that the backward pass reaches, and for a view of it."""
    return memory(x) in passes[-1].parameters


def given(parts: Parts, width: int, shape: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """The tensor that stands for a sum over samples, float32; without numbers where it is a parameter's that nobody watches."""
    parts = _shaped(parts, shape)
    if weight is not None and _is_unwatched(weight):
        return _of_nobody(weight, {width: parts})
    y = run(definitions.rounded, parts, width=width, more=MORE[width], times=1.0 / setting.share)
    return noted(y, parts, width)


def _is_unwatched(weight: Tensor) -> bool:
    """True for a parameter whose gradient nobody sees before it has arrived."""
    return weight.is_leaf and len(weight._backward_hooks or ()) == 1


def _of_nobody(weight: Tensor, sums: Sums) -> Tensor:
    """The tensor, without numbers, that stands for the gradient of such a parameter."""
    y = torch.zeros((), device=weight.device).expand(weight.shape)
    passes[-1].sums[memory(y)] = Summed(y, sums, True, place())
    return y


def noted(y: Tensor, parts: Parts, width: int, must_arrive: bool = True) -> Tensor:
    """The tensor, contiguous, that stands for a sum, whose parts are kept until it arrives at a parameter."""
    passes[-1].sums[memory(y)] = Summed(y, {width: _shaped(parts, y.shape)}, must_arrive, place())
    return y


def sums(y: Tensor, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum y of x, float32, along axes. Those of samples have the first one; what others give may go on."""
    must_arrive = 0 in axes and x.shape[0] > 1
    return noted(y.contiguous(), run(definitions.sums, x, axes=axes, share=setting.share), SUM, must_arrive)


def of_bias(gradient: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient of a bias, along all axes but its own."""
    parts = run(definitions.sums, gradient, axes=axes, share=setting.share)
    return given(parts, SUM, (parts[0].numel(),))


def of_linear(saved: Sequence[Tensor], gradient: Tensor, weight: Tensor) -> Tensor:
    """The gradient of a weight [O, I] of a dense layer, whose forward pass saved that; gradient [rows, O]."""
    share = setting.share
    if 2 * len(gradient) <= MOST_ROWS and saved[0].dtype != torch.int8 and _is_unwatched(weight):
        return _of_nobody(weight, {ROWS: run(definitions.rows_of_linear, tuple(saved[:2]), gradient, share=share)})
    parts = definitions.multiplied(Backend, *run(definitions.of_linear, tuple(saved), gradient, share=share))
    return given(parts, PRODUCT, weight.shape, weight)


def of_rows(x: Tensor, gradient: Tensor, weight: Tensor | None = None) -> Tensor:
    """The sum over rows of x [rows, I] times gradient [rows, O]: [O, I]."""
    parts = definitions.multiplied(Backend, *run(definitions.of_rows, x, gradient, share=setting.share))
    return given(parts, PRODUCT, parts[0].shape, weight)


def of_table(gradient: Tensor | None, rows: Tensor, index: Tensor, table: Tensor) -> Tensor:
    """The gradient of a table [N, C], of zeros, whose rows were taken by an index.

    Where the same rows were taken for all samples, as of positions, the gradient is a sum over samples already.
    """
    sums = None if gradient is None else arrived(gradient)
    if sums is None:
        sums = {SUM: run(definitions.numbers, rows, axes=(0, 1), share=setting.share)}
    ((width, parts),) = sums.items()
    place = parts[2].amax().reshape(1, 1)
    a, b, _ = run(definitions.at, tuple(each.reshape(-1, each.shape[-1]) for each in parts), place)
    return given((table.clone().index_add_(0, index, a), table.index_add_(0, index, b), place), width, table.shape)


def arrived(x: Tensor) -> Sums | None:
    """The sums that a tensor stands for, which has not been asked for before."""
    summed = passes[-1].sums.pop(memory(x), None)
    if summed is None or (summed.tensor.shape == x.shape and summed.tensor.stride() == x.stride()):
        return summed.sums if summed else None
    if not summed.tensor.is_contiguous():
        raise refused(f"a sum over samples of shape {list(x.shape)} is a view of another one", REMEDY)
    shape = summed.tensor.shape

    def viewed(each: Tensor) -> Tensor:
        return each.expand(shape).contiguous().as_strided(x.shape, x.stride(), x.storage_offset())

    return {width: tuple(map(viewed, parts)) for width, parts in made(summed.sums).items()}


def joined(a: Any, b: Any, y: Tensor) -> None:
    """Notes that a tensor is the sum of two: so autograd adds the gradients of a parameter that is used twice."""
    known = passes[-1].sums
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and memory(a) in known and memory(b) in known):
        return
    sums = added(arrived(a) or {}, arrived(b) or {})
    passes[-1].sums[memory(y)] = Summed(y, sums, True, place())


def refuse(name: str, why: str, remedy: str) -> None:
    """RefusedError for what no way to split a batch has in common."""
    if setting.on:
        raise refused(f"{name}: {why}", f"{remedy}, or run without --elastic")


def dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Any kind of dropout: the numbers themselves, or RefusedError."""
    if train and p:
        refuse("dropout", "it draws for a batch, not for a sample", "set p=0")
    return x


# --- sums -------------------------------------------------------------------------------------------------------------


@with_native_ops
def added(one: Sums, other: Sums) -> Sums:
    """Two sums as one; the tensors of the first one may be changed."""
    one, other = made(one), made(other)
    result = dict(one)
    for width, parts in other.items():
        mine = one.get(width)
        if mine is None:
            result[width] = parts
        elif mine[2].shape == parts[2].shape and torch.equal(mine[2], parts[2]):
            mine[0].add_(parts[0])
            mine[1].add_(parts[1])
        else:
            result[width] = run(definitions.added, mine, parts, width=width)
    return result


def made(sums: Sums) -> Sums:
    """Sums with products in the place of rows."""
    if ROWS not in sums:
        return sums
    return {PRODUCT: with_native_ops(run)(definitions.made, *sums[ROWS])}


def _value(sums: Sums, width: int) -> Tensor:
    return with_native_ops(run)(definitions.value, sums[width], width=width, more=MORE[width])


def _shaped(parts: Parts, shape: Sequence[int]) -> Parts:
    a, b, k = parts
    k = k.reshape(tuple(shape)) if k.numel() == a.numel() else k
    return a.reshape(tuple(shape)), b.reshape(tuple(shape)), k


def memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
