"""Steps that a script reports with repro.watch."""

import os
import sys
from typing import Any

from . import generators, hashing, recorder

LAST = 2**53  # the highest step number that a record may hold
OUTSIDE = "repro.watch was given a number below 0 or above 2^53: such a step is not recorded"
BOTH = "both an optimizer's steps and repro.watch were seen: lines of one number are of one step or not"

processes: set[int] = set()  # processes whose first call was seen; a forked child is another one


def record(number: int, state: Any) -> None:
    """Writes the line of a step that is due, and of the first one that is reported."""
    active = recorder.active
    if active is not None and (active.is_due(number) or os.getpid() not in processes):
        processes.add(os.getpid())
        _write(active, number, state)


@recorder.never_raise
def _write(active: recorder.Recorder, number: int, state: Any) -> None:
    if not 0 <= number <= LAST:
        recorder.unseen(OUTSIDE)
        return
    active.begin(number)
    active.local.step = number
    hashes = {
        "generator": generators.hashes(),
        "weights": hashing.hash_tree(_without_pytree(state), "watch", required=True),
    }
    if active.steps:
        recorder.note(BOTH)
    active.watched = True
    active.step(number, hashes)


def _without_pytree(state: Any) -> Any:
    """A pytree that JAX knows and we do not, such as Equinox' modules and Flax' states, as a dict of its leaves."""
    jax = sys.modules.get("jax")
    if jax is None or isinstance(state, (dict, list, tuple)) or hasattr(state, "state_dict"):
        return state
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    if len(leaves) == 1 and leaves[0][1] is state:
        return state
    return {jax.tree_util.keystr(path).strip("."): leaf for path, leaf in leaves}
