"""Calls of PyTorch's modules in the steps that `record --modules` names, with the loss and the gradients.

Whether a call belongs to a training step is known only once a backward pass begins: until then its line waits. It belongs
to it if the loss depends on what it, or the outermost call around it, has returned. What torch.compile would compile runs
as it is written.
"""

import atexit
import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterable
from typing import Any, Optional

from . import batches, by_hand, doubles, entries, module_calls, modules, pytorch, recorder
from .module_calls import Codes

TRANSFORMED = "modules that are called within torch.func, or while they are traced, are not written"
COMPILED = "modules in what torch.compile compiles are not written: that needs PyTorch 2.6 or later"
WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module")  # a wrapper's only child


class Called:
    """A call of a module that has begun."""

    def __init__(self, module: Any, outermost: Optional["Called"]):
        self.module = module
        self.outermost = outermost or self
        self.content: dict[str, Any] = {}
        self.nodes: set[int] = set()  # numbers of the nodes of the graph that made what it returned
        self.done = False


class Calls:
    """The calls since the last step."""

    def __init__(self, torch: Any, observer: pytorch.StepObserver):
        self.torch, self.observer = torch, observer
        self.doubles = doubles.Doubles(torch)
        self.roots: list[Any] = []  # weak references to the models, in the order in which they were first written
        self.reset()

    def reset(self) -> None:
        """Begins with nothing seen, also in a forked child."""
        self.doubles.stop()
        self.local = threading.local()
        self.waiting: list[Called] = []
        self.doubled: Optional[int] = None  # the step that is computed in float64
        self.numbered: Optional[int] = None  # the step of the last line
        self.number = 0  # its lines so far
        self.forget_gradients()

    def forget_gradients(self) -> None:
        self.step: Optional[int] = None  # the step of the last backward pass
        self.leaves: dict[int, tuple[str, Any]] = {}  # name and weak reference of each weight, by its identity
        self.gradients: dict[int, tuple[Codes, Codes]] = {}  # the hash of its gradient, and of that in float64

    def following(self) -> int:
        """The number of the step that is under way; without an optimizer one is counted when the next one begins."""
        own = self.observer.by_hand
        return module_calls.following() + int(own.pending is not None and not own.off)

    def begin(self, module: Any, args: Any, kwargs: Any) -> Optional[Called]:
        """A call begins; None if it is not written."""
        stack = self.stack()
        if not stack and not self.begins_pass():
            return None
        if self.observer.current_node() is not None:  # computed again for a backward pass
            return None
        if batches.is_transformed(self.torch):
            recorder.note(TRANSFORMED)
            return None
        called = Called(module, stack[0] if stack else None)
        called.content = {
            "settings": module_calls.settings(one for one in vars(module).items() if one[0] != "training"),
            "training": module.training,
            "inputs": module_calls.argument_hashes(args, kwargs),
            "weights": module_calls.hash_named(_present(module._parameters)),
            "buffers": module_calls.hash_named(_present(module._buffers)),
        }
        self.waiting.append(called)
        stack.append(called)
        return called

    def begins_pass(self) -> bool:
        """True if an outermost call is one of a step that is asked for, which from here on is computed in float64, too."""
        step, cuda = self.following(), self.torch.cuda
        if self.doubled not in (None, step):
            self.doubles.end()
            self.doubled = None
        if not self.torch.is_grad_enabled() or not module_calls.is_asked(step):
            return False
        if cuda.is_initialized() and cuda.is_current_stream_capturing():
            return False
        self.doubled = step
        self.doubles.begin()
        return True

    def end(self, called: Called, result: Any) -> None:
        """A call has returned."""
        self.leave(called)
        named = [*module_calls.arrays(result)]
        called.content["outputs"] = module_calls.hash_named(named)
        called.content["exact"] = self.exact(named) or None
        if called.outermost is called:
            made = [getattr(tensor, "grad_fn", None) for _, tensor in named]
            called.nodes = {node._sequence_nr() for node in made if node is not None}
        called.done = True

    def leave(self, called: Called) -> None:
        """A call is over; if an exception has ended it, it has no line."""
        stack = self.stack()
        del stack[stack.index(called) :]

    def stack(self) -> list[Called]:
        """The calls of this thread that have not returned, the outermost first."""
        if not hasattr(self.local, "stack"):
            self.local.stack = []
        stack: list[Called] = self.local.stack
        return stack

    def exact(self, named: Iterable[tuple[str, Any]]) -> Codes:
        """The hashes of the float64 copies of those arrays that have one."""
        copies = []
        for name, tensor in named:
            if self.doubles.on and isinstance(tensor, self.torch.Tensor) and tensor.dtype.is_floating_point:
                try:
                    copies.append((name, self.doubles.copy(tensor)))
                except doubles.MissingError:
                    pass
        return module_calls.hash_named(copies)

    def before_backward(self, tensors: Any) -> bool:
        """Writes the calls that a loss depends on, and the loss; True if its gradients are to be looked at."""
        if self.observer.current_node() is not None:
            return False
        step = self.following()
        if self.step != step:
            self.write_gradients_by_hand()
        if not module_calls.is_asked(step):
            return False
        if self.numbered != step:
            self.numbered, self.number = step, 0
        roots = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        self.write_calls(step, _sequence_numbers(roots))
        named = [*module_calls.arrays(roots[0] if len(roots) == 1 else roots)]
        self.number += 1
        module_calls.write_loss(step, self.number, module_calls.hash_named(named), self.exact(named) or None)
        self.step = step
        self.leaves.update({id(leaf): (name, weakref.ref(leaf)) for name, leaf in by_hand.leaves_of(roots)})
        return True

    def write_calls(self, step: int, numbers: set[int]) -> None:
        """Writes the calls that these nodes of a graph come from, and those whose results only such calls read."""
        needed: set[str] = set()
        kept: set[Called] = set()
        for one in reversed([one for one in self.waiting if one.done and one.outermost is one]):
            if one.nodes & numbers or (not one.nodes and needed & {*one.content["outputs"].values()}):
                kept.add(one)
                needed.update(one.content["inputs"].values())
        written = [one for one in self.waiting if one.done and one.outermost in kept]
        self.waiting = [one for one in self.waiting if one.outermost not in kept]
        written = [one for one in written if not _is_wrapper(one.module)]
        paths = self.paths([one.module for one in written])
        for one in written:
            self.number += 1
            path = paths[id(one.module)]
            module_calls.write_call(step, self.number, path, type(one.module).__name__, **one.content)

    def paths(self, called: list[Any]) -> dict[int, str]:
        """The path of each module, by its identity, from the largest one that it is part of."""
        trees = [(root, [*root.named_modules()]) for root in modules.known_modules()]
        trees.sort(key=lambda tree: len(tree[1]), reverse=True)  # stays in order where they are of one size
        trees += [(module, [*module.named_modules()]) for module in called]
        roots: dict[int, tuple[Any, str]] = {}
        for root, tree in trees:
            for name, module in tree:
                roots.setdefault(id(module), (root, modules.plain_name(f"{name}.")[:-1]))
        found = {id(module): roots[id(module)] for module in called}
        return {key: f"{self.prefix(root)}{name}".rstrip(".") for key, (root, name) in found.items()}

    def prefix(self, root: Any) -> str:
        """What paths begin with: nothing in the first model, `1:` in the next, the class of one without weights of its own."""
        known = modules.known_modules()
        if not any(one is root for one in known):  # as a loss, or a part of a model that was put together for this call
            weights = {key for one in known for key, _ in modules.names_in(one)}
            if not {key for key, _ in modules.names_in(root)} - weights:
                return f"{type(root).__name__}."
        roots = [reference() for reference in self.roots]
        place = next((place for place, one in enumerate(roots) if one is root), len(roots))
        if place == len(roots):
            self.roots.append(weakref.ref(root))
        return f"{place}:" if place else ""

    def after_backward(self) -> None:
        """Hashes the gradients, as the program may change them before the step."""
        for key, (_, reference) in self.leaves.items():
            gradient = getattr(reference(), "grad", None)
            if gradient is not None:
                named = [("", gradient)]
                self.gradients[key] = module_calls.hash_named(named), self.exact(named)

    def optimizer_step(self, optimizer: Any) -> None:
        """A step of an optimizer begins or has ended: the gradients that are its own are written, by its names for them."""
        observed = self.observer.optimizers.get(id(optimizer))
        if observed is not None and observed.reference() is not optimizer:
            observed = None  # an earlier one had its address
        names = {id(tensor): name for name, tensor in observed.parameters(optimizer)} if observed is not None else {}
        self.write_gradients(names)
        self.doubles.end()
        self.doubled = None
        self.waiting = []

    def write_gradients(self, names: dict[int, str]) -> None:
        """Writes the gradients of the last backward pass that have a name. Those of another optimizer are kept for its step."""
        named = [(name, self.gradients.pop(key)) for key, name in names.items() if key in self.gradients]
        if named and self.step is not None:
            ordinary = {name: code for name, (codes, _) in named for code in codes.values()}
            exact = {name: code for name, (_, codes) in named for code in codes.values()}
            module_calls.write_backward(self.step, ordinary, exact or None)

    def write_gradients_by_hand(self) -> None:
        """Writes the gradients of a step without an optimizer, which ends with the next step or the program."""
        if not self.observer.by_hand.off:
            self.write_gradients({key: name for key, (name, _) in self.leaves.items()})
        self.forget_gradients()


def _present(tensors: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, tensor) for name, tensor in tensors.items() if tensor is not None]


def _is_wrapper(module: Any) -> bool:
    """True for a module of PyTorch that only calls the one in it, which has its path."""
    children = [name for name, _ in module.named_children()]
    return len(children) == 1 and children[0] in WRAPPED and type(module).__module__.startswith("torch.")


def _sequence_numbers(roots: list[Any]) -> set[int]:
    """The numbers of all nodes of the graph below."""
    nodes = [getattr(root, "grad_fn", None) for root in roots]
    met: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in met:
            met.add(node)
            nodes += [following for following, _ in node.next_functions]
    return {node._sequence_nr() for node in met if not hasattr(node, "variable")}


calls: Optional[Calls] = None


def after_torch(torch: Any) -> None:
    """Watches the calls of modules, if REPRO_OBSERVE_MODULES names steps."""
    global calls
    if not module_calls.steps or pytorch.observer is None:
        return
    calls = Calls(torch, pytorch.observer)
    os.register_at_fork(after_in_child=calls.reset)
    atexit.register(recorder.never_raise(calls.write_gradients_by_hand))
    entries.add("module begins", recorder.never_raise(calls.begin))
    entries.add("module ends", recorder.never_raise(calls.end))
    entries.add("module left", recorder.never_raise(calls.leave))
    entries.add("loss", recorder.never_raise(calls.before_backward))
    entries.add("pass ended", recorder.never_raise(calls.after_backward))
    entries.add("step of calls", recorder.never_raise(calls.optimizer_step))
    _watch_modules(torch.nn.Module)
    _watch_backward(torch.autograd)
    optimizer = sys.modules[pytorch.OPTIMIZER]
    optimizer.register_optimizer_step_pre_hook(lambda owner, *_: entries.entries["step of calls"](owner))
    optimizer.register_optimizer_step_post_hook(lambda owner, *_: entries.entries["step of calls"](owner))


def after_torch__dynamo(dynamo: Any) -> None:
    """Has modules run as they are written: a compiled one calls none of those in it."""
    if calls is None:
        return
    compiler = calls.torch.compiler
    if hasattr(compiler, "set_stance"):
        compiler.set_stance("force_eager")
    else:
        recorder.note(COMPILED)


def _watch_modules(kind: Any) -> None:
    call = kind.__call__

    @functools.wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = entries.entries["module begins"](self, args, kwargs)
        if called is None:
            return call(self, *args, **kwargs)
        try:
            result = call(self, *args, **kwargs)
        except BaseException:
            entries.entries["module left"](called)
            raise
        entries.entries["module ends"](called, result)
        return result

    kind.__call__ = watched


def _watch_backward(autograd: Any) -> None:
    backward = autograd.backward

    @functools.wraps(backward)
    def watched(*args: Any, **kwargs: Any) -> Any:
        written = entries.entries["loss"](args[0] if args else kwargs.get("tensors"))
        result = backward(*args, **kwargs)
        if written:
            entries.entries["pass ended"]()
        return result

    autograd.backward = watched
