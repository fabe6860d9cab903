"""PyTorch: hooks around each optimizer's step, the batches of DataLoader, and the modules that own the parameters.

PyTorch's own hooks are used, which all optimizers call. Nothing is hooked into a module's call: that would change what
torch.compile makes of it.
"""

import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Optional

from . import generators, hashing, modules, recorder

OPTIMIZER = "torch.optim.optimizer"  # torch.optim has no attribute of the name
NO_LOADER = "no DataLoader of PyTorch handed out a batch before a step: batches are not observed there"
AHEAD = (
    "before some steps no DataLoader handed out a batch: where batches are asked for ahead, a step's batch is recorded "
    "with the step before"
)
MANY = 8  # optimizers; more have one parameter each, and are stepped within the backward pass


class Watched:
    """One optimizer: its place among all, and what its parameters are called."""

    def __init__(self, place: int, optimizer: Any):
        self.place = place
        self.reference = weakref.ref(optimizer)
        self.names: list[tuple[str, Any]] = []
        self.roots: list[Any] = []

    def parameters(self, optimizer: Any) -> list[tuple[str, Any]]:
        """Name and tensor of each parameter; the names are looked for again when parameters were added."""
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if [id(tensor) for tensor in tensors] != [id(tensor) for _, tensor in self.names]:
            self.names = self.named(optimizer)
        return self.names

    def named(self, optimizer: Any) -> list[tuple[str, Any]]:
        """By the largest modules that own parameters; else by group and place: `0.0.3`."""
        wanted = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        owned = [(root, dict(modules.names_in(root))) for root in modules.known_modules()]
        owned = [(root, names) for root, names in owned if wanted & names.keys()]
        owned.sort(key=lambda pair: (-len(wanted & pair[1].keys()), -len(pair[1])))
        found: dict[int, str] = {}
        roots: list[Any] = []
        for root, names in owned:
            new = {key: name for key, name in names.items() if key in wanted and key not in found}
            if new:
                roots.append(weakref.ref(root))
                taken = set(found.values())
                found.update({key: name for key, name in new.items() if name not in taken})
        self.roots = roots
        if found.keys() != wanted:
            recorder.note(
                f"the module of some of optimizer {self.place}'s parameters is not known: they are called by their "
                "group and place, and the module's buffers are not observed"
            )
        return [
            (f"{self.place}.{found.get(id(tensor), f'{group}.{index}')}", tensor)
            for group, options in enumerate(optimizer.param_groups)
            for index, tensor in enumerate(options["params"])
        ]

    def buffers(self) -> Iterator[tuple[str, Any]]:
        for ordinal, reference in enumerate(self.roots):
            root = reference()
            if root is not None:
                for name, tensor in root.named_buffers():
                    yield f"{self.place}.{f'{ordinal}:' if ordinal else ''}{modules.plain_name(name)}", tensor


class Observer:
    """What is known of the optimizers of this process, and of the step that is being taken."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.file = torch.optim.Optimizer.profile_hook_step.__code__.co_filename
        self.begin()

    def begin(self) -> None:
        self.optimizers: dict[int, Watched] = {}
        self.places = 0
        self.batches: dict[str, str] = {}
        self.batch_count = 0
        self.loads = False  # whether a loader ever handed out a batch
        self.local = threading.local()  # a step's hooks come in one thread, another's perhaps in another

    def before(self, optimizer: Any, arguments: Any, named: Any) -> None:
        """Reads what the step needs or changes: generators, gradients, before an optimizer's first step the weights."""
        to = recorder.active
        if to is None or self.within_another():
            return
        self.local.begun = None
        if not self.counts(optimizer):
            return
        watched = self.optimizers.get(id(optimizer))
        new = watched is None or watched.reference() is not optimizer
        if not new and not to.is_due(to.steps + 1):
            self.local.begun = {}
            return
        if watched is None or new:
            watched = self.optimizers[id(optimizer)] = Watched(self.places, optimizer)
            self.places += 1
        parameters = watched.parameters(optimizer)
        seen: recorder.Hashes = {"batch": dict(self.batches), "generator": generators.hashes()}
        if new:
            weights = {name: hashing.of_tensor(tensor) for name, tensor in parameters}
            if to.steps:
                seen["initial weights"] = weights
            else:
                to.step(0, {"initial weights": weights, "generator": seen["generator"]})
        if not arguments and named.get("closure") is None:  # a closure computes the gradients within the step
            seen["gradients"] = self.gradients(parameters)
        if not self.batch_count:
            recorder.note(AHEAD if self.loads else NO_LOADER)
        self.local.begun = seen

    def after(self, optimizer: Any, arguments: Any, named: Any) -> None:
        """Counts the step, and writes its line where it is due."""
        begun = getattr(self.local, "begun", None)
        to = recorder.active
        if to is None or begun is None or self.within_another():
            return
        self.local.begun = None
        seen = begun
        number = to.count()
        if seen:
            if "gradients" not in seen:
                seen["gradients"] = self.gradients(self.optimizers[id(optimizer)].parameters(optimizer))
            seen.update({"optimizer": {}, "weights": {}, "buffers": {}})
            for watched, stepped in self.to_hash(optimizer):
                parameters = watched.parameters(stepped)
                seen["weights"].update((name, hashing.of_tensor(tensor)) for name, tensor in parameters)
                seen["buffers"].update((name, hashing.of_tensor(tensor)) for name, tensor in watched.buffers())
                seen["optimizer"].update(self.state(watched, stepped, parameters))
            to.step(number, seen)
        self.batches.clear()
        self.batch_count = 0

    def within_another(self) -> bool:
        """Whether this is `super().step()`, or the step of an optimizer that another one holds: that one's counts.

        Seen on the stack. A count of hooks would be wrong from the first step on that raises.
        """
        frame: Optional[Any] = sys._getframe(1)
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_name == "wrapper" and frame.f_code.co_filename == self.file
            frame = frame.f_back
        return depth > 1

    def counts(self, optimizer: Any) -> bool:
        """Whether the weights change: not where GradScaler has a fused step skipped, nor while a graph is captured."""
        cuda = self.torch.cuda
        if cuda.is_initialized() and cuda.is_current_stream_capturing():
            recorder.note("a CUDA graph replays steps without Python: they are not observed")
            return False
        infinite = getattr(optimizer, "found_inf", None)
        return infinite is None or not bool(infinite)

    def to_hash(self, optimizer: Any) -> list[tuple[Watched, Any]]:
        """All optimizers, since the weights of one matter to another; of very many the one that took the step."""
        alive = [(watched, watched.reference()) for watched in self.optimizers.values()]
        alive = [(watched, found) for watched, found in alive if found is not None]
        return alive if len(alive) <= MANY else [pair for pair in alive if pair[1] is optimizer]

    def gradients(self, parameters: list[tuple[str, Any]]) -> dict[str, str]:
        return {name: hashing.of_tensor(tensor.grad) for name, tensor in parameters if tensor.grad is not None}

    def state(self, watched: Watched, optimizer: Any, parameters: list[tuple[str, Any]]) -> dict[str, str]:
        """The slots of each parameter, and the options of each group, such as the learning rate."""
        found: dict[str, str] = {}
        for name, tensor in parameters:
            if tensor in optimizer.state:
                found.update(hashing.of_tree(optimizer.state[tensor], name, unknown))
        for place, group in enumerate(optimizer.param_groups):
            options = {key: value for key, value in group.items() if key not in ("params", "param_names")}
            found.update(hashing.of_tree(options, f"{watched.place}.group {place}", unknown))
        return found

    def generators(self) -> dict[str, str]:
        found = {"torch": hashing.of_tensor(self.torch.default_generator.get_state())}
        cuda = self.torch.cuda
        for place, generator in enumerate(cuda.default_generators if cuda.is_initialized() else ()):
            found[f"cuda:{place}"] = hashing.of_tensor(generator.get_state())
        return found

    def batch(self, data: Any) -> None:
        """A batch that a loader handed out; those of evaluation, without gradients, do not count."""
        to = recorder.active
        if to is None or not self.torch.is_grad_enabled():
            return
        if to.is_due(to.steps + 1):
            self.batches.update(hashing.of_tree(data, str(self.batch_count), unknown))
        self.batch_count += 1
        self.loads = True


def unknown(text: str) -> None:
    recorder.note(text)


observer: Optional[Observer] = None
handles: list[Any] = []
entries: dict[str, Any] = {}
wraps: list[Any] = []  # what each entry is wrapped in


def after_torch(torch: Any) -> None:
    """Registers the hooks, once all of PyTorch has loaded."""
    global observer
    assert recorder.active is not None
    recorder.active.frameworks["torch"] = torch
    if not hasattr(sys.modules[OPTIMIZER], "register_optimizer_step_post_hook"):
        recorder.note(f"PyTorch {torch.__version__} has no hooks for all optimizers: 2.1 or later is needed")
        return
    observer = Observer(torch)
    generators.frameworks.append(observer.generators)
    os.register_at_fork(after_in_child=observer.begin)
    add_entries(before=_before, after=_after, batch=_batch)
    _register()
    _watch_loader(sys.modules["torch.utils.data.dataloader"])
    modules.watch(torch)


def after_torch__dynamo(dynamo: Any) -> None:
    """Keeps torch.compile from tracing what watches. Only now: importing the compiler for it would take seconds."""
    if observer is not None:
        wrap_entries(dynamo.disable)


def add_entries(**added: Any) -> None:
    """Adds hooks of the observer, wrapped as those before them."""
    for name, entry in added.items():
        for wrap in wraps:
            entry = wrap(entry)
        entries[name] = entry


def wrap_entries(wrap: Any) -> None:
    """Wraps all hooks of the observer, and has PyTorch call these instead."""
    wraps.append(wrap)
    entries.update({name: wrap(entry) for name, entry in entries.items()})
    for handle in handles:
        handle.remove()
    handles.clear()
    _register()


def _register() -> None:
    optimizer = sys.modules[OPTIMIZER]
    handles.append(optimizer.register_optimizer_step_pre_hook(entries["before"]))
    handles.append(optimizer.register_optimizer_step_post_hook(entries["after"]))


def _watch_loader(loader: Any) -> None:
    """Has each batch looked at on its way from the loader's iterator, of any kind, to the program."""
    kind = loader._BaseDataLoaderIter
    following = kind.__next__

    @functools.wraps(following)
    def __next__(self: Any) -> Any:  # noqa: N807
        data = following(self)
        entries["batch"](data)
        return data

    kind.__next__ = __next__


@recorder.quietly
def _before(optimizer: Any, arguments: Any, named: Any) -> None:
    assert observer is not None
    with observer.torch.no_grad():
        observer.before(optimizer, arguments, named)


@recorder.quietly
def _after(optimizer: Any, arguments: Any, named: Any) -> None:
    assert observer is not None
    with observer.torch.no_grad():
        observer.after(optimizer, arguments, named)


@recorder.quietly
def _batch(data: Any) -> None:
    assert observer is not None
    observer.batch(data)
