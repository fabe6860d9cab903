"""One optimizer of PyTorch: the names of its parameters, and all that it holds of them."""

import weakref
from collections.abc import Iterator
from typing import Any

from . import hashing, modules, recorder, scalars, shards

NO_NAMES = "are called by their group and place, as their module is not known; its buffers are not observed"

Parameters = list[tuple[str, Any]]  # name, tensor


class ObservedOptimizer:
    """The names of one optimizer's parameters."""

    def __init__(self, index: int, optimizer: Any, schedules: scalars.Schedules):
        self.index = index  # the number among all optimizers, in the order of their first steps
        self.reference = weakref.ref(optimizer)
        self.named: Parameters = []
        self.roots: list[Any] = []  # weak references to the modules that own the parameters
        self.flat: dict[str, shards.FlatParameter] = {}  # the parameters that FSDP 1 has flattened
        self.batches = 0  # batches handed out until its last step
        self.schedules = schedules

    def parameters(self, optimizer: Any) -> Parameters:
        """Name and tensor of each parameter; the names are looked for again when parameters were added."""
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if [id(tensor) for tensor in tensors] != [id(tensor) for _, tensor in self.named]:
            self.named = self.find_names(optimizer)
            self.flat = shards.flat_parameters(modules.known_modules(), self.named)
        return self.named

    def find_names(self, optimizer: Any) -> Parameters:
        """Names parameters by the largest modules that own them; else by group and place: `0.0.3`."""
        wanted = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        owners = [(root, dict(modules.names_in(root))) for root in modules.known_modules()]
        owners = [(root, names) for root, names in owners if wanted & names.keys()]
        owners.sort(key=lambda owner: (-len(wanted & owner[1].keys()), -len(owner[1])))
        result: dict[int, str] = {}
        self.roots = []
        for root, names in owners:
            new = {key: name for key, name in names.items() if key in wanted and key not in result}
            if new:
                self.roots.append(weakref.ref(root))
                taken = set(result.values())
                result.update({key: name for key, name in new.items() if name not in taken})
        if result.keys() != wanted:
            recorder.note(f"some of optimizer {self.index}'s parameters {NO_NAMES}")
        return [
            (f"{self.index}.{result.get(id(tensor), f'{number}.{place}')}", tensor)
            for number, group in enumerate(optimizer.param_groups)
            for place, tensor in enumerate(group["params"])
        ]

    def buffers(self) -> Iterator[tuple[str, Any]]:
        for number, reference in enumerate(self.roots):
            root = reference()
            if root is not None:
                prefix = f"{self.index}.{number}:" if number else f"{self.index}."
                for name, tensor in root.named_buffers():
                    yield prefix + modules.plain_name(name), tensor

    def weights(self, optimizer: Any) -> Parameters:
        return [(name, self.part(name, tensor)) for name, tensor in self.parameters(optimizer)]

    def gradients(self, optimizer: Any) -> Parameters:
        gradients = [(name, self.part(name, tensor.grad)) for name, tensor in self.parameters(optimizer)]
        return [(name, gradient) for name, gradient in gradients if gradient is not None]

    def slots(self, optimizer: Any) -> Parameters:
        """The optimizer's state, for each parameter."""
        slots: Parameters = []
        for name, tensor in self.parameters(optimizer):
            own = list(hashing.leaves(optimizer.state[tensor], name)) if tensor in optimizer.state else []
            slots += [(path, self.part(name, leaf)) for path, leaf in own or [(name, None)] if own or name in self.flat]
        return slots

    def part(self, name: str, value: Any) -> Any:
        """A value of a parameter; of one that is flattened this rank's piece, even where it has none."""
        is_piece = name in self.flat and (value is None or hasattr(value, "cpu"))
        return shards.Piece(self.flat[name], value) if is_piece else value

    def state(self, optimizer: Any) -> Parameters:
        """The slots of each parameter, and the options of each group, such as the learning rate."""
        state = self.slots(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            options = {key: value for key, value in group.items() if key not in ("params", "param_names")}
            state += hashing.leaves(options, f"{self.index}.group {number}")
        return state
