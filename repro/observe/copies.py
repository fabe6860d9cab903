"""Copies of the weights that a program keeps in PyTorch.

They are averages (EMA, SWA), target networks, the best so far, a module that computes in another precision than the optimizer's
weights have: modules, lists and dicts with tensors of the shapes of the parameters, which are not the parameters. Python's garbage collector knows them, so nothing of theirs is hooked.
"""

import functools
import gc
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Optional

from . import hashing, modules, recorder

LOOKS = (2, 16, 128, 1024, 8192)  # of the hashed steps, those at which copies are searched for again
PREFIXES = ("", "module.", "_orig_mod.")  # prefixes of keys in a dict that was made from a wrapped module
TWINS = "some copies of the weights cannot be distinguished, and are not observed"

Shapes = tuple[tuple[Any, ...], ...]
Place = tuple[str, Callable[[], Any]]  # the name of a copy, and a function that returns it as long as it lives


class Copies:
    """The copies that the last search found."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.places: list[Place] = []
        self.steps = 0  # hashed steps so far

    def hashes(self, roots: list[Any], parameters: list[list[Any]], look: bool) -> dict[str, str]:
        """The hash of each tensor of each copy of the parameters, which are those of each optimizer."""
        self.steps += 1
        if look or self.steps in LOOKS:
            self.places = CopySearch(self.torch, roots, parameters).places()
        hashes: dict[str, str] = {}
        for name, source in self.places:
            for path, tensor in tensors_in(source(), self.torch):
                code = hashing.hash_or_note(tensor, f"{name}.{path}")
                if code is not None:
                    hashes[f"{name}.{path}"] = code
        return hashes


class CopySearch:
    """A search through all that lives in this process."""

    def __init__(self, torch: Any, roots: list[Any], parameters: list[list[Any]]):
        self.torch = torch
        trained = [parameter for own in parameters for parameter in own]
        self.trained = {id(parameter) for parameter in trained}
        gradients = {id(parameter.grad) for parameter in trained if parameter.grad is not None}
        self.own = self.trained | gradients
        self.shapes: set[Shapes] = set()  # shapes of all parameters of a module, or of the trained ones, in its order
        self.named: list[dict[str, Any]] = []  # by module: the shapes of the trained parameters
        self.unnamed = False  # True if there are weights that are no module's
        for root in roots:
            self.add(root)
        within = {id(parameter) for root in roots for parameter in root.parameters()}
        for own in parameters:
            if own and within.isdisjoint(map(id, own)):  # an optimizer has weights that are no module's
                self.shapes.add(tuple(map(shape_of, own)))
                self.unnamed = True

    def add(self, root: Any) -> None:
        """Adds the shapes of a module, and of the modules in it that hold all that is trained."""
        wanted = {id(parameter) for parameter in root.parameters()} & self.trained
        for module in root.modules():
            named = list(module.named_parameters())
            trained = {modules.plain_name(name): shape_of(one) for name, one in named if id(one) in wanted}
            if trained and len(trained) == len(wanted):
                self.shapes |= {tuple(shape_of(one) for _, one in named), tuple(trained.values())}
                self.named.append(trained)

    def places(self) -> list[Place]:
        """The places of the copies, each under a unique name."""
        copies = self.copies()
        owners = self.owners(copies)
        places = [place for copy in copies for place in self.place(copy, owners.get(id(copy), []))]
        names = [name for name, _ in places]
        if len(set(names)) < len(names):
            recorder.note(TWINS)
        return sorted((place for place in places if names.count(place[0]) == 1), key=lambda place: place[0])

    def copies(self) -> list[Any]:
        """The modules that are in no other copy, the lists and the dicts."""
        kinds: dict[type, Any] = {list: self.is_list, dict: self.is_dict, OrderedDict: self.is_dict}
        module = self.torch.nn.Module
        copies = []
        for value in gc.get_objects():
            kind = type(value)
            test = kinds.get(kind, kinds)
            if test is kinds:  # a class that is seen for the first time
                test = kinds[kind] = self.is_module if issubclass(kind, module) else None
            if test is not None and test(value):
                copies.append(value)
        within = {
            id(part) for copy in copies if isinstance(copy, module) for part in copy.modules() if part is not copy
        }
        within |= {
            id(vars(part)["_parameters"]) for copy in copies if isinstance(copy, module) for part in copy.modules()
        }
        return [copy for copy in copies if id(copy) not in within]

    def is_list(self, value: list[Any]) -> bool:
        return bool(value) and self.is_tensor(value[0]) and self.are_copies(value)

    def is_dict(self, value: dict[str, Any]) -> bool:
        for named in self.named:
            first = next(iter(named))
            for prefix in PREFIXES:
                if prefix + first in value:
                    tensors = [value.get(prefix + name) for name in named]
                    return self.are_copies(tensors) and [*map(shape_of, tensors)] == [*named.values()]
        values = [*value.values()] if self.unnamed and value else []
        return bool(values) and self.is_tensor(values[0]) and self.are_copies(values)

    def is_module(self, value: Any) -> bool:
        if not isinstance(vars(value).get("_modules"), dict):  # it is being constructed
            return False
        tensors = list(value.parameters())
        return bool(tensors) and self.are_copies(tensors)

    def are_copies(self, tensors: list[Any]) -> bool:
        """True if these tensors match the parameters in number and shapes, and are not the parameters."""
        return (
            any(len(tensors) == len(shapes) for shapes in self.shapes)
            and all(self.is_tensor(tensor) and id(tensor) not in self.own for tensor in tensors)
            and tuple(map(shape_of, tensors)) in self.shapes
        )

    def is_tensor(self, value: Any) -> bool:
        """True for numbers of any precision: an average may be rounded to half, and a mask is no copy."""
        return is_plain(value, self.torch) and value.is_floating_point()

    def owners(self, copies: list[Any]) -> dict[int, list[tuple[Any, str]]]:
        """The objects that hold each copy, with the attribute: instances, modules, the script itself."""
        wanted = {id(copy) for copy in copies}
        holders = gc.get_referrers(*copies) if copies else []
        dicts = [holder for holder in holders if type(holder) in (dict, OrderedDict) and holder is not vars(self)]
        owners: dict[int, list[tuple[Any, str]]] = {}
        for owner in [*holders, *(gc.get_referrers(*dicts) if dicts else [])]:
            for attribute, value in attributes(owner):
                if id(value) in wanted and (owner, attribute) not in owners.setdefault(id(value), []):
                    owners[id(value)].append((owner, attribute))
        return owners

    def place(self, copy: Any, owners: list[tuple[Any, str]]) -> Iterator[Place]:
        """By the object that holds it, else by its class; of what is no module, a local variable holds it."""
        for owner, attribute in owners:
            reference = reference_to(owner)
            if reference is not None:
                is_script = owner is sys.modules.get("__main__")
                name = attribute if is_script else f"{type(owner).__name__}.{attribute}"
                yield name, functools.partial(value_of, reference, attribute)
                return
        reference = reference_to(copy)
        if reference is not None:
            yield type(copy).__name__, reference


def value_of(reference: Callable[[], Any], attribute: str) -> Any:
    return dict(attributes(reference())).get(attribute)


def attributes(owner: Any) -> list[tuple[str, Any]]:
    """The attributes of an instance or of the script, of a module with its parts; nothing of what has none."""
    if isinstance(owner, type) or (type(owner) is type(sys) and owner is not sys.modules.get("__main__")):
        return []
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return []
    parts = held.get("_modules")
    return [*held.items(), *(parts.items() if isinstance(parts, dict) else ())]


def reference_to(value: Any) -> Optional[Callable[[], Any]]:
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def tensors_in(copy: Any, torch: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of a copy, of a module with its buffers."""
    if isinstance(copy, torch.nn.Module):
        named = [*copy.named_parameters(), *copy.named_buffers()]
    elif isinstance(copy, dict):
        named = list(copy.items())
    elif isinstance(copy, list):
        named = list(enumerate(copy))
    else:
        return
    for name, tensor in named:
        if is_plain(tensor, torch):
            yield modules.plain_name(str(name)), tensor


def is_plain(value: Any, torch: Any) -> bool:
    """True for a dense tensor with values, of no class that a library derived."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return value.layout is torch.strided and value.device.type in ("cpu", "cuda")


def shape_of(tensor: Any) -> tuple[Any, ...]:
    return tuple(tensor.shape)
