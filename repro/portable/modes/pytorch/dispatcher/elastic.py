"""Gradients that are exact sums over samples, rounded once: `enable(elastic=True)`.

A kernel that adds over samples in a backward pass gives its sum as parts, see repro.portable.definitions.elastic, and with
them an ordinary tensor, by whose memory they are found again when it arrives at a parameter, whatever views autograd made.
There the parts of all micro-batches since the gradient was zeroed are added, without rounding, and `.grad` is their sum,
rounded. Ranks exchange parts, too: elastic_ranks.py beside this file.

Nothing is left to chance: a gradient that arrives without parts is refused, and so is a sum over samples that was not the
gradient of a parameter. Whatever computes with sums over the batch, as contrastive losses do, is no sum over samples.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions import elastic as definitions
from repro.portable.definitions.elastic import PRODUCT, SUM, Parts
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops
from repro.portable.modes.pytorch.dispatcher.refusal import place
from repro.portable.numbers.constants import BITS

DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
MORE = {PRODUCT: BITS, SUM: 0}
"""Bits of the other operand, by the width of parts."""
Sums = dict[int, Parts]
"""Parts by their width: what is added up of products, and of numbers."""


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
        first, *others = [_value(sums, width) for sums in (self.before, self.own) for width in sorted(sums)]
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
    return _memory(x) in passes[-1].parameters


def given(parts: Parts, width: int, shape: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """The tensor that stands for a sum over samples, float32; without numbers where it is a parameter's that nobody watches."""
    parts = _shaped(parts, shape)
    if weight is not None and weight.is_leaf and len(weight._backward_hooks or ()) == 1:
        return noted(torch.zeros((), device=weight.device).expand(tuple(shape)), parts, width)
    y = run(definitions.rounded, parts, width=width, more=MORE[width], times=1.0 / setting.share)
    return noted(y, parts, width)


def noted(y: Tensor, parts: Parts, width: int, must_arrive: bool = True) -> Tensor:
    """The tensor, contiguous, that stands for a sum, whose parts are kept until it arrives at a parameter."""
    passes[-1].sums[_memory(y)] = Summed(y, {width: _shaped(parts, y.shape)}, must_arrive, place())
    return y


def sums(y: Tensor, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum y of x, float32, along axes. Those of samples have the first one; what others give may go on."""
    must_arrive = 0 in axes and x.shape[0] > 1
    return noted(y.contiguous(), run(definitions.sums, x, axes=axes, share=setting.share), SUM, must_arrive)


def of_bias(gradient: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient of a bias, along all axes but its own."""
    parts = run(definitions.sums, gradient, axes=axes, share=setting.share)
    return given(parts, SUM, (parts[0].numel(),))


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
    summed = passes[-1].sums.pop(_memory(x), None)
    if summed is None or (summed.tensor.shape == x.shape and summed.tensor.stride() == x.stride()):
        return summed.sums if summed else None
    if not summed.tensor.is_contiguous():
        raise refused(f"a sum over samples of shape {list(x.shape)} is a view of another one", REMEDY)
    shape = summed.tensor.shape

    def viewed(each: Tensor) -> Tensor:
        return each.expand(shape).contiguous().as_strided(x.shape, x.stride(), x.storage_offset())

    return {width: tuple(map(viewed, parts)) for width, parts in summed.sums.items()}


def joined(a: Any, b: Any, y: Tensor) -> None:
    """Notes that a tensor is the sum of two: so autograd adds the gradients of a parameter that is used twice."""
    known = passes[-1].sums
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and _memory(a) in known and _memory(b) in known):
        return
    sums = added(arrived(a) or {}, arrived(b) or {})
    passes[-1].sums[_memory(y)] = Summed(y, sums, True, place())


def refuse(name: str, why: str, remedy: str) -> None:
    """RefusedError for what no way to split a batch has in common."""
    if setting.on:
        raise refused(f"{name}: {why}", f"{remedy}, or run without --elastic")


# --- sums -------------------------------------------------------------------------------------------------------------


@with_native_ops
def added(one: Sums, other: Sums) -> Sums:
    """Two sums as one; the tensors of the first one may be changed."""
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


def _value(sums: Sums, width: int) -> Tensor:
    return with_native_ops(run)(definitions.value, sums[width], width=width, more=MORE[width])


def _shaped(parts: Parts, shape: Sequence[int]) -> Parts:
    a, b, k = parts
    k = k.reshape(tuple(shape)) if k.numel() == a.numel() else k
    return a.reshape(tuple(shape)), b.reshape(tuple(shape)), k


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


# --- backward passes --------------------------------------------------------------------------------------------------


def install(undo: ExitStack) -> None:
    """Sums over samples are exact, until `undo` is closed."""
    replace(undo, setting, "on", True)
    undo.callback(leaves.clear)
    library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    undo.callback(library.reset)
    for name in DROPOUTS:
        for ending in ("", "_"):
            library.impl(name + ending, "CompositeImplicitAutograd", dropout, False)
    own = torch.autograd._engine_run_backward

    @wraps(own)
    def run_backward(outputs: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get("accumulate_grad"):
            return own(outputs, *arguments, **options)
        with _watched(outputs):
            return own(outputs, *arguments, **options)

    replace(undo, torch.autograd, "_engine_run_backward", run_backward)


def dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Any kind of dropout: the numbers themselves, or RefusedError."""
    if train and p:
        refuse("dropout", "it draws for a batch, not for a sample", "set p=0")
    return x


@contextmanager
def _watched(outputs: Sequence[Tensor]) -> Iterator[None]:
    """A backward pass whose gradients are added exactly."""
    reached = list(_parameters(outputs))
    current = Backward(parameters={_memory(each) for each in reached})
    handles = []
    passes.append(current)
    try:
        for each in reached:
            handles.append(each.register_hook(_arriving(each)))
            handles.append(each.register_post_accumulate_grad_hook(_seen))
        yield
        for summed in current.sums.values():
            if summed.must_arrive:
                raise RefusedError(
                    f"portable numerics: --elastic: a sum over samples of shape {list(summed.tensor.shape)} at "
                    f"{summed.where} was not the gradient of a parameter; {REMEDY}"
                )
    finally:
        passes.remove(current)
        for handle in handles:
            handle.remove()


REMEDY = "leave out what samples compute together, or parameters that others are made of, or run without --elastic"


def _parameters(outputs: Sequence[Tensor]) -> Iterator[Tensor]:
    """The tensors whose gradients a backward pass adds to."""
    nodes: list[Any] = [each.grad_fn for each in outputs]
    known = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        nodes.extend(following for following, _ in node.next_functions)


def _arriving(parameter: Tensor) -> Callable[[Tensor], Tensor]:
    """The hook that makes of a gradient the sum of all since the last step."""

    @with_native_ops
    def arriving(gradient: Tensor) -> Tensor:
        sums = arrived(gradient)
        if sums is None or parameter.dtype != torch.float32:
            name = f"a parameter of {str(parameter.dtype).removeprefix('torch.')} {list(parameter.shape)}"
            raise refused(f"the gradient of {name} is no exact sum over samples", REMEDY)
        if setting.share != 1.0 and parameter not in setting.shared:
            raise refused(f"a parameter of shape {list(parameter.shape)} is not DDP's", "hand all of them to DDP")
        leaf = leaves.setdefault(parameter, Leaf())
        _begin(leaf, parameter)
        parameter.grad = None  # what is returned has it
        return leaf.plus(sums)

    return arriving


def _begin(leaf: Leaf, parameter: Tensor) -> None:
    """Forgets what was added before the gradient was zeroed."""
    gradient = parameter.grad
    if gradient is not None and (leaf.own or leaf.before) and leaf.wrote(gradient):
        return
    if gradient is not None and bool(gradient.any()):
        what = f"the gradient of a parameter of shape {list(parameter.shape)} was changed, and more is added to it"
        raise refused(what, "change it after the last backward pass of a step, and zero it before the next step")
    leaf.before, leaf.own = {}, {}


def _seen(parameter: Tensor) -> None:
    if parameter in leaves and parameter.grad is not None:
        leaves[parameter].seen = weakref.ref(parameter.grad), parameter.grad._version
