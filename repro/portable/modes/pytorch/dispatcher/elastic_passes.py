"""The watch of backward passes under `elastic`: what arrives at a parameter is added to what arrived since the last step."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.compilers import replace
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops

DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")


def install(undo: ExitStack) -> None:
    """Sums over samples are exact, until `undo` is closed."""
    replace(undo, elastic.setting, "on", True)
    undo.callback(elastic.leaves.clear)
    library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    undo.callback(library.reset)
    for name in DROPOUTS:
        for ending in ("", "_"):
            library.impl(name + ending, "CompositeImplicitAutograd", elastic.dropout, False)
    own = torch.autograd._engine_run_backward

    @wraps(own)
    def run_backward(outputs: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get("accumulate_grad"):
            return own(outputs, *arguments, **options)
        with _watched(outputs):
            return own(outputs, *arguments, **options)

    replace(undo, torch.autograd, "_engine_run_backward", run_backward)


@contextmanager
def _watched(outputs: Sequence[Tensor]) -> Iterator[None]:
    """A backward pass whose gradients are added exactly."""
    reached = list(_parameters(outputs))
    current = elastic.Backward(parameters={elastic.memory(each) for each in reached})
    handles = []
    elastic.passes.append(current)
    try:
        for each in reached:
            handles.append(each.register_hook(_arriving(each)))
            handles.append(each.register_post_accumulate_grad_hook(_seen))
        yield
        for summed in current.sums.values():
            if summed.must_arrive:
                raise RefusedError(
                    f"portable numerics: --elastic: a sum over samples of shape {list(summed.tensor.shape)} at "
                    f"{summed.where} was not the gradient of a parameter; {elastic.REMEDY}"
                )
    finally:
        elastic.passes.remove(current)
        for handle in handles:
            handle.remove()


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
        sums = elastic.arrived(gradient)
        if sums is None or parameter.dtype != torch.float32:
            name = f"a parameter of {str(parameter.dtype).removeprefix('torch.')} {list(parameter.shape)}"
            raise elastic.refused(f"the gradient of {name} is no exact sum over samples", elastic.REMEDY)
        if elastic.setting.share != 1.0 and parameter not in elastic.setting.shared:
            raise elastic.refused(
                f"a parameter of shape {list(parameter.shape)} is not DDP's", "hand all of them to DDP"
            )
        leaf = elastic.leaves.setdefault(parameter, elastic.Leaf())
        _begin(leaf, parameter)
        parameter.grad = None  # what is returned has it
        return leaf.plus(sums)

    return arriving


def _begin(leaf: elastic.Leaf, parameter: Tensor) -> None:
    """Forgets what was added before the gradient was zeroed."""
    gradient = parameter.grad
    if gradient is not None and (leaf.own or leaf.before) and leaf.wrote(gradient):
        return
    if gradient is not None and bool(gradient.any()):
        what = f"the gradient of a parameter of shape {list(parameter.shape)} was changed, and more is added to it"
        raise elastic.refused(
            what, "change it after the last backward pass of a step, and zero it before the next step"
        )
    leaf.before, leaf.own = {}, {}


def _seen(parameter: Tensor) -> None:
    if parameter in elastic.leaves and parameter.grad is not None:
        elastic.leaves[parameter].seen = weakref.ref(parameter.grad), parameter.grad._version
