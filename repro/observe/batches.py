"""Batches of a step of PyTorch.

They are seen on their way out of a DataLoader. Where none handed out any, a batch is what the outermost module that is
trained is called with, the first time before each backward pass. That hook is there for one call only, and is gone for
good once something is compiled: it would change what torch.compile makes of a module.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from . import copies, hashing, modules, recorder, samples
from .entries import add, entries

NONE = (
    "no DataLoader of PyTorch handed out a batch before a step, nor was a module called: batches are not observed there"
)
AHEAD = "before some steps no DataLoader handed out a batch: one asked for ahead is recorded with the step before"
FILE = "module.py"  # the file of PyTorch in which a module's hooks are called


class Batches:
    """The batches since the last step."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.reset()
        self.trained: set[int] = set()  # ids of modules with parameters that an optimizer holds
        self.hook: Any = None  # set while the next call of a module is awaited
        self.compiles = False  # True once the program has called torch.compile

    def reset(self) -> None:
        """Begins with no batch seen, also in a forked child."""
        self.handed_out = 0  # batches that loaders ever handed out
        self.passes = samples.Passes(self.torch)
        self.end_step()

    def is_due(self) -> bool:
        """True if a batch that is requested now belongs to a step that is hashed."""
        active = recorder.active
        return active is not None and self.torch.is_grad_enabled() and active.is_due(active.steps + 1)

    def add(self, data: Any, iterator: Any) -> None:
        """A batch that a loader handed out; those of evaluation, without gradients, do not count."""
        described = self.passes.add(iterator, data, self.is_due())
        if described:
            self.samples[str(self.count)] = described
        if recorder.active is None or not self.torch.is_grad_enabled():
            return
        place = self.count
        self.count += 1
        self.handed_out += 1
        if recorder.active.is_due(recorder.active.steps + 1):
            self.add_leaves(hashing.leaves(data, str(place)))

    def end_step(self) -> None:
        self.hashes: dict[str, str] = {}
        self.shapes: dict[str, str] = {}  # of the batches' parts, as 32x10
        self.samples: dict[str, Any] = {}  # samples by the number of their batch
        self.count = 0

    def add_optimizer(self, optimizer: Any) -> None:
        """Learns which modules are trained, and waits for the first call of one."""
        wanted = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        for root in modules.known_modules():
            for name, module in root.named_modules():
                if any(id(parameter) in wanted for parameter in module._parameters.values()):
                    parts = name.split(".") if name else []
                    self.trained.update(id(root.get_submodule(".".join(parts[:n]))) for n in range(len(parts) + 1))
        self.wait_for_call()

    def wait_for_call(self) -> None:
        """Waits for the next call of a module that is trained, if its step is hashed."""
        active = recorder.active
        if active is None or self.hook is not None or self.handed_out or self.compiles or not self.trained:
            return
        if active.is_due(active.steps + 1):
            register = self.torch.nn.modules.module.register_module_forward_pre_hook
            self.hook = register(_before_call)

    def stop_waiting(self) -> None:
        if self.hook is not None:
            self.hook.remove()
            self.hook = None

    def compile(self) -> None:
        self.compiles = True
        self.stop_waiting()

    def call(self, module: Any, args: Any, kwargs: Any) -> None:
        """A call of a module, if it is trained, and if this is no part of a backward pass or of a trace."""
        torch, active = self.torch, recorder.active
        if active is None or self.handed_out or id(module) not in self.trained or not torch.is_grad_enabled():
            return
        if is_transformed(torch):
            return
        self.stop_waiting()
        if not active.is_due(active.steps + 1):
            return
        given = [*hashing.leaves(args), *hashing.leaves(kwargs)]
        self.add_leaves((f"{self.count}.{path}", leaf) for path, leaf in given if self.is_data(leaf))
        self.count += 1

    def add_leaves(self, leaves: Iterable[tuple[str, Any]]) -> None:
        """Adds the hashes and the shapes of a batch's parts."""
        parts = dict(leaves)
        codes = hashing.hash_named(parts.items())
        self.hashes.update(codes)
        for path in codes:
            if len(getattr(parts[path], "shape", ())):
                self.shapes[path] = "x".join(str(size) for size in parts[path].shape)

    def is_data(self, leaf: Any) -> bool:
        """True for a tensor or an array that was not computed from weights."""
        if copies.is_plain(leaf, self.torch):
            return not leaf.requires_grad
        numpy = sys.modules.get("numpy")
        return numpy is not None and type(leaf) is numpy.ndarray


def is_transformed(torch: Any) -> bool:
    """True if this call is traced, is one of many that vmap makes, or recomputes what a backward pass needs."""
    functorch = getattr(torch._C, "_functorch", None)
    asked = (
        getattr(torch._C, "_current_autograd_node", None),
        getattr(torch._C, "_get_tracing_state", None),
        getattr(functorch, "peek_interpreter_stack", None),
    )
    return any(ask is not None and ask() is not None for ask in asked)


def _before_call(module: Any, args: Any) -> None:
    """The hook of PyTorch. It is not given the arguments by name: the function that calls it has them."""
    frame = sys._getframe(1)
    kwargs = frame.f_locals.get("kwargs") if frame.f_code.co_filename.endswith(FILE) else None
    entries["call"](module, args, kwargs if type(kwargs) is dict else {})


def watch(torch: Any, batches: Batches) -> None:
    """Observes batches of loaders and calls of modules."""
    add("batch", recorder.never_raise(batches.add))
    add("call", recorder.never_raise(batches.call))
    add("compile", recorder.never_raise(batches.compile))
    _look(
        sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter,
        "__next__",
        lambda iterator, data: entries["batch"](data, iterator),
    )
    samples.watch(sys.modules["torch.utils.data.dataloader"], lambda: batches.passes, batches.is_due)
    _look(torch.optim.Optimizer, "__init__", lambda optimizer, _: entries["optimizer"](optimizer))
    torch.compile = _compiling(torch.compile)


def watch_compiler(dynamo: Any) -> None:
    """Observes calls of compiled modules, from outside of what is compiled."""
    dynamo.optimize = _compiling(dynamo.optimize)
    kind = dynamo.OptimizedModule
    call = kind.__call__

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        entries["call"](self._orig_mod, args, kwargs)
        return call(self, *args, **kwargs)

    kind.__call__ = dynamo.disable(__call__, recursive=False)


def _compiling(compile: Any) -> Any:  # noqa: A002
    @functools.wraps(compile)
    def compiles(*args: Any, **kwargs: Any) -> Any:
        entries["compile"]()
        return compile(*args, **kwargs)

    return compiles


def _look(kind: Any, name: str, look: Callable[[Any, Any], None]) -> None:
    """Observes an object and the result of one of its methods."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        look(self, result)
        return result

    setattr(kind, name, watched)
