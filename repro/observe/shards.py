"""Whole tensors of those that ranks share, as FSDP and tensor-parallel layers do.

Each rank holds a part, and a hash of the parts would depend on how many ranks there are. So the ranks that share a tensor
gather it before it is hashed. That is a collective: all of them must take part, with the same tensors in the same order.
Therefore they first agree to, over the store by which PyTorch's ranks found each other. Where one of them does not come,
as it is not observed or hashes another step, the others wait for it once, and from then on hash their own parts.

To gather moves numbers and computes none, so it changes no bit of the program.
"""

import hashlib
import math
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from . import recorder
from .recorder import Arrays

WAIT = 60.0  # seconds; a program's own collectives wait for 10 minutes or longer
PORTION = 1 << 28  # bytes of whole tensors that are in memory together, or few more than this
LARGEST = 8  # bytes of a number
SMALL = 1 << 20  # bytes of a whole tensor whose parts are sent together with others
ALL, OTHERS, LATE = "all", "others", "late"  # what the ranks agree on: to gather, or why not
UNKNOWN = "?"
PARTS = {
    OTHERS: "ranks {} do not hold the same tensors: of those that they share, each rank's own part is hashed",
    LATE: "not all of ranks {} came to gather the tensors that they share: of these, each rank's own part is hashed",
}

Group = tuple[int, ...]  # the ranks that share a tensor
Part = tuple[
    int, Any, Any
]  # a rank's place among them; the axis that they divide, or the shape of what is flattened; a tensor


class FlatParameter(NamedTuple):
    """A parameter that FSDP 1 flattened: each rank has a piece of it, which may be empty."""

    name: str
    shape: Any  # of the whole parameter
    length: int  # of this rank's piece
    group: Any  # the process group


class Piece(NamedTuple):
    """This rank's piece of a flattened parameter, of its gradient or of its optimizer's state; or what is no piece."""

    of: FlatParameter
    tensor: Any


rounds: dict[Group, int] = {}  # how often the ranks of a group have met
apart: set[Group] = set()  # groups that gather no more


def whole(arrays: Arrays) -> Iterator[Arrays]:
    """Yields the arrays in portions, with whole tensors in the place of those that ranks share."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        yield _own_parts(arrays)
        return
    shared: dict[Group, Arrays] = {}
    for array in arrays:
        shared.setdefault(_ranks(distributed, array[2]), []).append(array)
    yield shared.pop((), [])
    for group in sorted(shared):  # in the same order on all ranks, of which each may be in several groups
        if _do_all_gather(group, shared[group]):
            yield from _gathered(distributed, shared[group])
        else:
            yield _own_parts(shared[group])


def _ranks(distributed: Any, leaf: Any) -> Group:
    """The ranks that share a tensor; none of one that this rank has as a whole."""
    if type(leaf) is Piece:
        return tuple(distributed.get_process_group_ranks(leaf.of.group))
    mesh = getattr(leaf, "device_mesh", None)
    if mesh is None or not hasattr(leaf, "_local_tensor") or mesh.size() == 1 or mesh.get_coordinate() is None:
        return ()
    if all(placement.is_replicate() for placement in leaf.placements):
        return ()
    return tuple(mesh.mesh.flatten().tolist())


def _do_all_gather(group: Group, arrays: Arrays) -> bool:
    """True if all ranks of a group are about to gather these tensors."""
    if group in apart:
        return False
    described = dict.fromkeys((channel, *_described(name, leaf)) for channel, name, leaf in arrays)
    verdict = _agreed(group, hashlib.sha256(repr(list(described)).encode()).hexdigest())
    if verdict == ALL:
        if recorder.active is not None:
            recorder.active.shared.add(",".join(map(str, group)))
        return True
    if verdict == LATE:
        apart.add(group)
    recorder.unseen(PARTS[verdict].format(", ".join(map(str, group))))
    return False


def _described(name: str, leaf: Any) -> tuple[Any, ...]:
    """What must be the same on all ranks. Of a flattened parameter a rank may have no gradient and no state."""
    if type(leaf) is Piece:
        return leaf.of.name, tuple(leaf.of.shape)
    return name, str(leaf.dtype), tuple(leaf.shape), str(leaf.placements)


def _agreed(group: Group, what: str) -> str:
    """What the ranks of a group agree on. The first who decides does so for all: the store compares and sets at once."""
    store = sys.modules["torch.distributed.distributed_c10d"]._get_default_store()
    number = rounds[group] = rounds.get(group, 0) + 1
    place = f"repro/{hashlib.sha256(repr(group).encode()).hexdigest()}"
    keys = [f"{place}/{number}/{name}" for name in ("what", "ranks", "verdict")]

    def decide(verdict: str) -> str:
        return str(store.compare_set(keys[2], "", verdict).decode())

    if store.compare_set(keys[0], "", what).decode() != what:
        return decide(OTHERS)
    if store.add(keys[1], 1) == len(group):
        for key in keys:  # of the round before, which all have left
            store.delete_key(key.replace(f"/{number}/", f"/{number - 1}/"))
        return decide(ALL)
    end, pause = time.monotonic() + WAIT, 1e-4
    while time.monotonic() < end:
        verdict = str(store.compare_set(keys[2], UNKNOWN, UNKNOWN).decode())  # only reads, and does not wait
        if verdict != UNKNOWN:
            return verdict
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return decide(LATE)


def _gathered(distributed: Any, arrays: Arrays) -> Iterator[Arrays]:
    """Gathers the arrays of a group of ranks, and yields them in portions."""
    for portion in _portions(arrays):
        parts = {array[:2]: part for array in portion if (part := _part(distributed, array[2])) is not None}
        joined = _joined(distributed, portion, parts)
        for channel, name, leaf in portion:
            if type(leaf) is not Piece and (channel, name) not in parts:
                try:
                    joined.append((channel, name, _full_tensor(leaf)))
                except Exception as error:  # on all ranks, which go on with the next one
                    recorder.unseen(f"{name} ({channel}), which ranks share, is not gathered: {error}")
        yield joined


def _portions(arrays: Arrays) -> Iterator[Arrays]:
    """The arrays in portions, which end at the same one on all ranks, though a rank may have nothing of a flattened parameter."""
    owners: dict[Any, Arrays] = {}
    for channel, name, leaf in arrays:
        owners.setdefault(leaf.of.name if type(leaf) is Piece else (channel, name), []).append((channel, name, leaf))
    portion: Arrays = []
    size = 0
    for own in owners.values():
        leaf = own[0][2]
        size += LARGEST * math.prod(leaf.of.shape if type(leaf) is Piece else leaf.shape)
        portion += own
        if size > PORTION:
            yield portion
            portion, size = [], 0
    yield portion


def _part(distributed: Any, leaf: Any) -> Optional[Part]:
    """This rank's part of what is joined from parts; None of what PyTorch gathers: what is large, or divided by two axes."""
    if type(leaf) is Piece:
        if leaf.tensor is None:
            return None
        is_piece = tuple(leaf.tensor.shape) == (leaf.of.length,)  # a count of steps is none, for example
        return distributed.get_rank(leaf.of.group), leaf.of.shape if is_piece else None, _copied(leaf.tensor)
    local, mesh = leaf._local_tensor, leaf.device_mesh
    if (
        leaf.numel() * LARGEST > SMALL
        or mesh.ndim > 1
        or type(leaf.placements[0]).__name__ != "Shard"
        or type(local) is not sys.modules["torch"].Tensor
    ):
        return None
    return mesh.get_local_rank(), leaf.placements[0].dim, _copied(local)


def _copied(tensor: Any) -> Any:
    """A copy in the CPU's memory: of a view, all that it is a view of would be sent."""
    return tensor.detach().cpu().clone()


def _joined(distributed: Any, portion: Arrays, parts: dict[tuple[str, str], Part]) -> Arrays:
    """Joins the parts that all ranks have, in the order of ranks; also of arrays of which this rank has none."""
    leaves = [leaf for _, _, leaf in portion if type(leaf) is Piece or leaf.device_mesh.ndim == 1]
    if not leaves:
        return []
    group = leaves[0].of.group if type(leaves[0]) is Piece else leaves[0].device_mesh.get_group()
    everybody: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(everybody, parts, group=group)
    joined: Arrays = []
    for key in dict.fromkeys(key for each in everybody for key in each):
        held = sorted((each[key] for each in everybody if key in each), key=lambda part: part[0])
        way, tensor = held[0][1:]
        if way is not None:
            tensor = sys.modules["torch"].cat([part for _, _, part in held], way if isinstance(way, int) else 0)
            tensor = tensor if isinstance(way, int) else tensor.reshape(way)
        joined.append((*key, tensor))
    return joined


def _full_tensor(leaf: Any) -> Any:
    """The whole of a distributed tensor. PyTorch warns that this may be slow: the program did not ask for it."""
    logger = sys.modules["logging"].getLogger("torch.distributed.tensor._redistribute")
    logger.disabled, before = True, logger.disabled
    try:
        return leaf.full_tensor()
    finally:
        logger.disabled = before


def _own_parts(arrays: Arrays) -> Arrays:
    """What this rank holds of these arrays: of a flattened parameter perhaps nothing."""
    there = [array for array in arrays if type(array[2]) is not Piece or array[2].tensor is not None]
    return [(channel, name, leaf.tensor if type(leaf) is Piece else leaf) for channel, name, leaf in there]


def flat_parameters(roots: list[Any], named: list[tuple[str, Any]]) -> dict[str, FlatParameter]:
    """Those of some parameters that FSDP 1 has flattened, with `use_orig_params`, by name."""
    names = {id(tensor): name for name, tensor in named}
    flat: dict[str, FlatParameter] = {}
    for module in (module for root in roots for module in root.modules()):
        handle: Any = getattr(module, "_handle", None)
        joined = getattr(handle, "flat_param", None)
        if joined is None or not getattr(handle, "uses_sharded_strategy", False):
            continue
        for tensor, shape in zip(getattr(joined, "_params", None) or (), joined._shapes):
            name = names.get(id(tensor))
            if name is not None:
                flat[name] = FlatParameter(name, tuple(shape), tensor.numel(), handle.process_group)
    return flat
