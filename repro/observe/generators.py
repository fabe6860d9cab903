"""States of the random number generators.

They are those of Python, NumPy and TensorFlow, and of frameworks that add theirs. A generator that nobody seeded and
nobody drew from is left out: its first state is the system's noise, in each run another, and decides nothing. What a
framework draws while it is imported counts as nothing (JAX 0.10 draws from NumPy's). NumPy's is the global one; those
of default_rng are the program's own objects. TensorFlow's are that of its seeds, and each object of tf.random.Generator.
"""

import functools
import os
import random
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Optional

from . import hashing, recorder

last_hashed: dict[str, tuple[Any, str]] = {}  # the last state of each generator and its hash: most seldom change
unused: dict[str, Any] = {}  # the state of each generator while unused
made: list[Any] = []  # weak references to TensorFlow's Generators, in the order in which they were made
framework_hashes: list[Callable[[], dict[str, str]]] = []  # for each framework, a function that adds its generators


class NumPyState(NamedTuple):
    """The state of NumPy's own generator, compared faster than its text is made."""

    name: str
    words: bytes  # of uint32
    position: int
    has_gauss: int
    gauss: str


def start() -> None:
    """Notes, before the program's first line, that its generators are unused."""
    note_python_unused()
    os.register_at_fork(after_in_child=note_python_unused)  # after `random`, which seeds itself anew there


def note_python_unused() -> None:
    unused["python"] = random.getstate()


def after_numpy_random(module: ModuleType) -> None:
    unused["numpy"] = _numpy_state(module)


def _numpy_state(module: Any) -> Any:
    state = module.get_state()
    if isinstance(state, dict):  # of another algorithm, by numpy.random.set_bit_generator
        return repr([(path, hashing.hash_leaf(leaf)) for path, leaf in hashing.leaves(state)])
    name, words, position, has_gauss, gauss = state
    return NumPyState(str(name), words.tobytes(), int(position), int(has_gauss), float(gauss).hex())


def _tensorflow_state() -> Any:
    """The generator of seeds of TensorFlow's eager operations; None before the first is used."""
    context = sys.modules.get("tensorflow.python.eager.context")
    generator = getattr(getattr(context, "_context", None), "_rng", None)
    return generator.getstate() if generator is not None else None


def after_tensorflow_python_ops_stateful_random_ops(module: Any) -> None:
    """Learns of TensorFlow's Generators as they are made."""
    kind = module.Generator
    init = kind.__init__

    @functools.wraps(init)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(weakref.ref(self))

    kind.__init__ = watched


def _of_tensorflow() -> dict[str, Any]:
    """The states of TensorFlow's Generators; none of one that a graph makes while it is traced."""
    states = {f"tensorflow.Generator {number}": _numbers(reference()) for number, reference in enumerate(made)}
    return {name: state for name, state in states.items() if state is not None}


def _numbers(generator: Any) -> Any:
    """The state of a Generator; None where it is gone, or has no numbers."""
    try:
        return generator.state.numpy().tolist()
    except Exception:
        return None


def _states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": random.getstate()}
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        states["numpy"] = _numpy_state(numpy)
    return states


def _used_states() -> dict[str, Any]:
    return {name: state for name, state in _states().items() if state != unused.get(name)}


def execute_import(execute: Callable[[], None]) -> None:
    """Executes a framework's module. A generator that was unused before counts as unused afterwards."""
    used = _used_names()
    execute()
    _count_as_unused(used)


@recorder.never_raise
def _used_names() -> set[str]:
    return set(_used_states())


@recorder.never_raise
def _count_as_unused(used: Optional[set[str]]) -> None:
    if used is not None:
        unused.update((name, state) for name, state in _states().items() if name not in used)


def _hash_state(name: str, state: Any) -> str:
    last, code = last_hashed.get(name, (None, ""))
    if state != last or hashing.content_folder is not None:
        code = hashing.hash_text("state", _text(state))
        last_hashed[name] = state, code
    return code


def _text(state: Any) -> str:
    """The text that is hashed: `repr` of tuples of whole numbers, and a float in hexadecimal."""
    if isinstance(state, str):
        return state
    if isinstance(state, NumPyState):
        return repr((state.name, memoryview(state.words).cast("I").tolist(), *state[2:]))
    return repr(state)


def hashes() -> dict[str, str]:
    """The hash of the text of each state."""
    states = _used_states()
    tensorflow = _tensorflow_state()
    if tensorflow is not None:
        states["tensorflow"] = tensorflow
    states.update(_of_tensorflow())
    codes = {name: _hash_state(name, state) for name, state in states.items()}
    for hashes_of_framework in framework_hashes:
        codes.update(hashes_of_framework())
    return codes
