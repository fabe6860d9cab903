"""repro.watch(): for a loop whose steps no hook sees, one line in the script."""

import operator
import os
import sys
from typing import Any

first: set[int] = set()  # the process whose first call was seen; a child that was forked is another


def watch(step: int, state: Any) -> None:
    """Has the arrays of `state` hashed as the weights after this step, if `repro record` or `verify` runs the script.

    `state` is any nesting of dicts, lists and tuples, PyTorch's or Keras' modules, dataclasses and JAX's pytrees, with
    arrays of any framework and plain numbers in it. Otherwise this does nothing, and costs nothing: leave it in.

    Call it outside of what a framework compiles. `step` counts as you count, a resumed run from where it goes on.
    TypeError if it is no whole number.
    """
    number = operator.index(step)
    recorder = sys.modules.get("_repro_observe.recorder")  # loaded at the start of Python, perhaps from another folder
    active = getattr(recorder, "active", None)
    if recorder is None or active is None:
        return
    if active.is_due(number) or os.getpid() not in first:
        first.add(os.getpid())
        recorder.quietly(_write)(active, recorder, number, state)


def _write(active: Any, recorder: Any, number: int, state: Any) -> None:
    import importlib

    def part(name: str) -> Any:
        return importlib.import_module(f"_repro_observe.{name}")

    hashing = part("hashing")
    seen = {"generator": part("generators").hashes()}
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
