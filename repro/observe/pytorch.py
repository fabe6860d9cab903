"""Steps of PyTorch's optimizers.

Each is seen by PyTorch's own hooks, which all optimizers call.
"""

import functools
import os
import sys
import threading
from types import FrameType
from typing import Any, Optional

from . import batches, by_hand, copies, entries, generators, hashing, modules, recorder, scalars, windows
from .optimizers import ObservedOptimizer

OPTIMIZER = "torch.optim.optimizer"  # torch.optim has no attribute of this name
MAX_OPTIMIZERS = 8  # more are not hashed together: they have one parameter each, and step within the backward pass

BEFORE = "weights before"
GRAPH = "a CUDA graph replays steps without Python: they are not observed"


class StepObserver:
    """The optimizers of this process, and the step that is being taken."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.current_node = getattr(torch._C, "_current_autograd_node", lambda: None)
        self.file = torch.optim.Optimizer.profile_hook_step.__code__.co_filename
        self.batches = batches.Batches(torch)
        self.by_hand = by_hand.ByHand(torch)
        self.reset()

    def reset(self) -> None:
        """Begins with nothing seen, also in a forked child."""
        self.batches.reset()
        self.by_hand.reset()
        self.optimizers: dict[int, ObservedOptimizer] = {}
        self.optimizer_count = 0
        self.passes = 0  # backward passes since the last step
        self.copies = copies.Copies(self.torch)
        self.local = threading.local()  # a step's hooks come in one thread, another's perhaps in another

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Reads what the step needs or changes: generators, gradients, before an optimizer's first step the weights."""
        active = recorder.active
        if active is None or self.is_nested():
            return
        self.local.hashes = None
        if not self.changes_weights(optimizer):
            return
        hashes: recorder.Hashes = {}
        self.local.hashes = hashes  # from here on the step counts, even if something fails
        observed = self.optimizers.get(id(optimizer))
        new = observed is None or observed.reference() is not optimizer
        self.local.due = new or active.is_due(active.steps + 1)
        self.local.closure = bool(args) or kwargs.get("closure") is not None
        if not self.local.due:
            return
        if observed is None or new:
            schedules = scalars.Schedules(self.torch, optimizer if self.are_few() else None)
            observed = self.optimizers[id(optimizer)] = ObservedOptimizer(self.optimizer_count, optimizer, schedules)
            self.optimizer_count += 1
        hashes["batch"] = self.batches.hashes
        handed_out = self.batches.handed_out
        if handed_out == observed.batches and not self.batches.hashes:  # others may have taken some
            recorder.note(batches.AHEAD if handed_out else batches.NONE)
        hashes["shapes"] = self.batches.shapes
        hashes["generator"] = generators.hashes()
        hashes["scalars"] = {
            scalars.PASSES: str(self.passes),
            **scalars.of_groups(optimizer, observed.index),
            **scalars.of_scaler(),
            **observed.schedules.counters(),
        }
        weights = observed.weights(optimizer)
        hashes["copies"] = self.hash_copies(optimizer, new)
        arrays = [(BEFORE, *named) for named in weights if new or active.looks_between]
        if not self.local.closure:  # which computes them within the step
            arrays += [("gradients", *named) for named in observed.gradients(optimizer)]
        codes = hashing.hash_arrays(arrays)
        before = codes.get(BEFORE, {})
        if active.looks_between:
            hashes[recorder.CHANGED] = dict(before)
        if new:
            if active.steps:
                hashes[recorder.INITIAL] = before
            else:
                slots = hashing.hash_named(observed.slots(optimizer))  # a resumed run: what was restored
                active.step(0, {recorder.INITIAL: before, "generator": hashes["generator"], "optimizer": slots})
        if not self.local.closure:
            hashes["gradients"] = codes.get("gradients", {})

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Counts the step, and writes its line where it is due."""
        active = recorder.active
        if active is None or self.is_nested():
            return
        hashes = vars(self.local).pop("hashes", {})
        if hashes is None:
            return
        number, passes, self.passes = active.count(), self.passes, 0
        samples = self.batches.samples
        self.batches.end_step()
        self.batches.wait_for_call()
        if id(optimizer) in self.optimizers:
            self.optimizers[id(optimizer)].batches = self.batches.handed_out
        if not vars(self.local).pop("due", True):
            return
        if vars(self.local).pop("closure", False):
            hashes["gradients"] = hashing.hash_named(self.optimizers[id(optimizer)].gradients(optimizer))
            before = int(hashes["scalars"][scalars.PASSES])
            hashes["scalars"].update({scalars.PASSES: str(passes), scalars.CLOSURE: str(passes - before)})
        hashes.update({"optimizer": {}, "weights": {}, "buffers": {}})
        arrays: recorder.Arrays = []
        for observed, owner in self.optimizers_to_hash(optimizer):
            arrays += [("weights", *named) for named in observed.weights(owner)]
            arrays += [("buffers", *named) for named in observed.buffers()]
            arrays += [("optimizer", *named) for named in observed.state(owner)]
        hashes.update(hashing.hash_arrays(arrays))
        active.step(number, hashes, samples)

    def is_nested(self) -> bool:
        """True in `super().step()`, or in the step of an optimizer that another one holds: the outer step counts.

        Seen on the stack. A count of hooks would be wrong from the first step on that raises.
        """
        frame: Optional[FrameType] = sys._getframe(1)
        depth = 0
        while frame is not None:  # in each step: traceback.walk_stack takes three times as long
            depth += frame.f_code.co_name == "wrapper" and frame.f_code.co_filename == self.file
            frame = frame.f_back
        return depth > 1

    def changes_weights(self, optimizer: Any) -> bool:
        """False if GradScaler has a fused step skipped, and while a graph is captured."""
        cuda = self.torch.cuda
        if cuda.is_initialized() and cuda.is_current_stream_capturing():
            recorder.unseen(GRAPH)
            return False
        infinite = getattr(optimizer, "found_inf", None)
        return infinite is None or not bool(infinite)

    def are_few(self) -> bool:
        """True if there are few optimizers, not one for each parameter, so that there is time to observe all."""
        return sum(observed.reference() is not None for observed in self.optimizers.values()) <= MAX_OPTIMIZERS

    def optimizers_to_hash(self, optimizer: Any) -> list[tuple[ObservedOptimizer, Any]]:
        """The optimizers to hash: all, since the weights of one matter to another; of very many the last to step."""
        pairs = [(observed, observed.reference()) for observed in self.optimizers.values()]
        alive = [(observed, owner) for observed, owner in pairs if owner is not None]
        return alive if self.are_few() else [pair for pair in alive if pair[1] is optimizer]

    def hash_copies(self, optimizer: Any, look: bool) -> dict[str, str]:
        """The hash of each tensor of each copy of the weights, as they are before the step."""
        all_observed = [observed for observed, _ in self.optimizers_to_hash(optimizer)]
        roots = [reference() for observed in all_observed for reference in observed.roots]
        parameters = [[tensor for _, tensor in observed.named] for observed in all_observed]
        return self.copies.hashes([root for root in roots if root is not None], parameters, look and self.are_few())

    def generators(self) -> dict[str, str]:
        hashes = {"torch": hashing.hash_tensor(self.torch.default_generator.get_state())}
        cuda = self.torch.cuda
        for index, generator in enumerate(cuda.default_generators if cuda.is_initialized() else ()):
            hashes[f"cuda:{index}"] = hashing.hash_tensor(generator.get_state())
        return hashes

    def add_optimizer(self, optimizer: Any) -> None:
        """A new optimizer: from now on steps are its own."""
        self.by_hand.stop()
        self.batches.add_optimizer(optimizer)

    def before_backward(self, tensors: Any) -> bool:
        """Counts a backward pass; whether it is one, and no part of another, as of a checkpointed layer."""
        if self.current_node() is not None:
            return False
        self.passes += 1
        self.batches.wait_for_call()
        self.by_hand.before(tensors)
        return True

    def after_backward(self) -> None:
        self.by_hand.after()


observer: Optional[StepObserver] = None
handles: list[Any] = []  # of the hooks that are registered


def after_torch(torch: Any) -> None:
    """Registers the hooks, once all of PyTorch has loaded."""
    global observer
    recorder.add_framework(torch)
    if not hasattr(sys.modules[OPTIMIZER], "register_optimizer_step_post_hook"):
        recorder.note(f"PyTorch {torch.__version__} has no hooks for all optimizers: 2.1 or later is needed")
        return
    observer = StepObserver(torch)
    generators.framework_hashes.append(observer.generators)
    os.register_at_fork(after_in_child=observer.reset)
    without_gradients = torch.no_grad()
    entries.add("before", recorder.never_raise(without_gradients(observer.before)))
    entries.add("after", recorder.never_raise(without_gradients(observer.after)))
    entries.add("optimizer", recorder.never_raise(observer.add_optimizer))
    entries.add("before backward", recorder.never_raise(without_gradients(observer.before_backward)))
    entries.add("wait", windows.wait)
    entries.add("after backward", recorder.never_raise(without_gradients(observer.after_backward)))
    by_hand.watch(observer.by_hand)
    entries.after_wrapping.append(_register)
    _register()
    batches.watch(torch, observer.batches)
    _watch_backward(torch.autograd, observer)
    modules.watch(torch)


def after_torch__dynamo(dynamo: Any) -> None:
    """Keeps torch.compile from tracing what watches. Only now: importing the compiler for it would take seconds."""
    if observer is not None:
        entries.wrap_all(dynamo.disable)
        batches.watch_compiler(dynamo)


def _register() -> None:
    """Registers the hooks of optimizers, in the place of those that were not yet wrapped."""
    for handle in handles:
        handle.remove()
    optimizer = sys.modules[OPTIMIZER]
    handles[:] = [
        optimizer.register_optimizer_step_pre_hook(entries.entries["before"]),
        optimizer.register_optimizer_step_post_hook(entries.entries["after"]),
    ]


def _watch_backward(autograd: Any, observer: StepObserver) -> None:
    """Observes each backward pass: `Tensor.backward` calls this function, too."""
    backward = autograd.backward

    @functools.wraps(backward)
    def watched(*args: Any, **kwargs: Any) -> Any:
        whole = entries.entries["before backward"](args[0] if args else kwargs.get("tensors"))
        if whole:
            entries.entries["wait"](observer.passes - 1)
        result = backward(*args, **kwargs)
        if whole:
            entries.entries["after backward"]()
        return result

    autograd.backward = watched
