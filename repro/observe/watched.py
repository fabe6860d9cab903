"""Steps that a script reports with repro.watch."""

import os
import sys
from typing import Any

from . import generators, hashing, recorder

first: set[int] = set()  # the process whose first call was seen; a child that was forked is another


def record(number: int, state: Any) -> None:
    """Writes the line of a step that is due, and of the first one that is reported."""
    active = recorder.active
    if active is not None and (active.is_due(number) or os.getpid() not in first):
        first.add(os.getpid())
        _write(active, number, state)


@recorder.quietly
def _write(active: recorder.Recorder, number: int, state: Any) -> None:
    seen = {"generator": generators.hashes()}
    seen["weights"] = hashing.of_tree(_plain(state), "watch", recorder.note)
    if active.steps:
        recorder.note("both an optimizer's steps and repro.watch were seen: lines of one number are of one step or not")
    active.watched = True
    active.step(number, seen)


def _plain(state: Any) -> Any:
    """A pytree that JAX knows and we do not, such as Equinox' modules and Flax' states, as a dict of its leaves."""
    jax = sys.modules.get("jax")
    if jax is None or isinstance(state, (dict, list, tuple)) or hasattr(state, "state_dict"):
        return state
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    if len(leaves) == 1 and leaves[0][1] is state:
        return state
    return {jax.tree_util.keystr(path).strip("."): leaf for path, leaf in leaves}
