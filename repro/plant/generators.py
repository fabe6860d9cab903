"""Random generators of Python and NumPy as parts."""

import gc
import random
from typing import Any, Optional

from ..observe import generators as observed
from .controls import Part, module
from .values import Items

UNUSED = Part(lambda: {"state": None}, lambda items: None)
"""A generator that nobody has seeded or drawn from: its state is the system's noise."""


def parts() -> dict[str, Part]:
    """The global generators, and those that the program made, if there is one of a kind."""
    used = observed._used_states()
    result = {"generator `python`": of_python(random) if "python" in used else UNUSED}
    numpy = module("numpy.random")
    if numpy is not None and hasattr(numpy, "get_state"):
        of_numpy = Part(lambda: _read_numpy(numpy), lambda items: _write_numpy(numpy, items))
        result["generator `numpy`"] = of_numpy if "numpy" in used else UNUSED
        old = _only(numpy.RandomState, besides=(getattr(numpy.mtrand, "_rand", None),))
        if old is not None:
            result["the program's `RandomState`"] = Part(
                lambda: _read_numpy(old), lambda items: _write_numpy(old, items)
            )
        own = _only(getattr(numpy, "Generator", None))
        if own is not None:
            bits = own.bit_generator
            result["the program's generator of NumPy"] = Part(
                lambda: {"state": plain(bits.state)}, lambda items: _set_bits(bits, items["state"])
            )
    own_random = _only(random.Random, besides=(getattr(random, "_inst", None), _of_names()))
    if own_random is not None:
        result["the program's `random.Random`"] = of_python(own_random)
    return result


def of_python(generator: Any) -> Part:
    """A generator of Python: the module `random`, or an object of its class."""

    def write(items: Items) -> None:
        check_used(items)
        generator.setstate(_tuples(items["state"]))

    return Part(lambda: {"state": generator.getstate()}, write)


def _only(kind: Any, besides: tuple[Any, ...] = ()) -> Optional[Any]:
    """The only object of exactly this class; None if there is none, or several."""
    if kind is None:
        return None
    objects = [one for one in gc.get_objects() if type(one) is kind and not any(one is other for other in besides)]
    return objects[0] if len(objects) == 1 else None


def _of_names() -> Any:
    """The generator that `tempfile` draws names from, if it has one."""
    sequence = getattr(module("tempfile"), "_name_sequence", None)
    return getattr(sequence, "_rng", None)


def check_used(items: Items) -> None:
    """Raises ValueError where the first process had not used a generator: then there is no state to go back to."""
    if items["state"] is None:
        raise ValueError("nothing had been drawn from it at first")


def _read_numpy(numpy: Any) -> Items:
    return {"state": plain(numpy.get_state(legacy=False))}


def _write_numpy(numpy: Any, items: Items) -> None:
    check_used(items)
    state = items["state"]
    if state["bit_generator"] == numpy.get_state(legacy=False)["bit_generator"]:
        numpy.set_state(state)


def _set_bits(bits: Any, state: Any) -> None:
    numbers = module("numpy")
    current = bits.state["state"]
    state["state"] = {
        name: numbers.array(value, dtype=current[name].dtype) if isinstance(value, list) else value
        for name, value in state["state"].items()
    }
    bits.state = state


def plain(value: Any) -> Any:
    """A state as JSON can hold it: arrays as lists, numbers of NumPy as Python's."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value
