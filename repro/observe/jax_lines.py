"""Lines of steps by hand in JAX: the hashes of what a call is given and returns."""

from typing import Any, NamedTuple, Optional

from . import hashing, memory, recorder, scalars, trees

spread = False  # True once a call was given arrays of which other processes have parts
gradients: dict[int, dict[str, Any]] = {}  # by number: the line of a step that returned gradients, until the next one


class Seen(NamedTuple):
    """An array of a call."""

    path: str
    state: str  # the channel if it is carried on and is not a weight
    given: str  # the channel if it is not carried on
    code: str  # its SHA-256


def hashed(leaves: trees.Leaves) -> list[Seen]:
    """The hashes of arrays that can be read. Of others is said so only if this is a step, of no library."""
    global spread
    spread = spread or any(memory.is_spread(leaf) for _, leaf in leaves)
    codes = hashing.hash_named([(path, leaf) for path, leaf in leaves if not memory.is_spread(leaf)], "JAX: {}")
    return [
        Seen(path, trees.state_channel(leaf), trees.given_channel(leaf), codes[path])
        for path, leaf in leaves
        if path in codes
    ]


def numbers(name: str, value: Any) -> dict[str, str]:
    """The numbers of an argument, as text."""
    values: dict[str, str] = {}
    scalars.add(values, name, value)
    return values


def write(index: Optional[int], line: dict[str, Any], weights: dict[str, str]) -> None:
    """Writes a step's line, with the weights after it."""
    active = recorder.active
    assert active is not None
    if spread:
        recorder.unseen(hashing.SPREAD)
    number = line.pop("number", None) or active.count()
    texts = {f"{index}.{name}": text for name, text in line.pop("scalars").items()}
    active.step(number, {**line, "scalars": texts, "weights": weights})
