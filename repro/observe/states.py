"""One hash of all that an object holds.

Of arrays, tables, sparse matrices, generators, and objects of any class, by their attributes; of an object of C by what
its `__reduce__` says. What is another one in each run or on each machine is left out, such as `mean_fit_time`.
"""

import sys
from collections.abc import Iterator
from typing import Any, Optional

from . import hashing, recorder

NOISE = ("_time", "_stop_words_id", "_n_threads")  # suffixes of names: a time, an address, a number of cores
SPARSE = ("data", "indices", "indptr", "row", "col", "offsets", "shape")  # of SciPy's arrays; the rest is a cache


def hash_all(value: Any, name: str, required: bool = False) -> Optional[str]:
    """The hash of a value and of all within it; None where a part has none, and then the step is incomplete if required."""
    try:
        code = hashing.hash_leaf(value) if _is_plain(value) else None
        return code or hashing.hash_text(type(value).__name__, repr([*_parts(value, "", (), 0)]))
    except Exception as error:
        say = recorder.unseen if required else recorder.note
        say(f"{name}, of type {type(value).__name__}, is not hashed: {error}")
        return None


def is_noise(name: str) -> bool:
    return name.rstrip("_").endswith(NOISE)


def is_generator(value: Any) -> bool:
    random = sys.modules.get("numpy.random")
    return random is not None and isinstance(value, (random.RandomState, random.Generator))


def _is_plain(value: Any) -> bool:
    """True for an array or a scalar, except structured arrays: bytes between their fields are noise."""
    return getattr(getattr(value, "dtype", None), "names", None) is None and not hasattr(value, "to_numpy")


def _parts(value: Any, path: str, above: tuple[int, ...], depth: int) -> Iterator[tuple[str, str]]:
    """The path and hash of each leaf; of what contains itself, where it does."""
    if id(value) in above:
        yield path, f"circle {above.index(id(value))}"
        return
    if depth > hashing.MAX_DEPTH:
        raise ValueError(f"{path} lies deeper than {hashing.MAX_DEPTH}")
    code = hashing.hash_leaf(value) if _is_plain(value) else None
    if code is not None:
        yield path, code
        return
    text = _text(value)
    if text is not None:
        yield path, text
        return
    yield path, type(value).__qualname__
    for key, child in _children(value, path):
        if not is_noise(str(key)):
            yield from _parts(child, f"{path}.{key}", (*above, id(value)), depth + 1)


def _text(value: Any) -> Optional[str]:
    """The name of a class or function; the text of a dtype and the like."""
    if isinstance(value, (type, type(sys), type(_text), type(len))):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    if isinstance(value, (complex, range, slice)) or type(value).__name__.endswith("DType"):
        return repr(value)
    return None


def _children(value: Any, path: str) -> Any:
    """Pairs of name and value of what an object holds."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (set, frozenset)):
        return enumerate(sorted(value, key=repr))
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if is_generator(value):
        state = value.get_state() if hasattr(value, "get_state") else value.bit_generator.state
        return [("state", state)]
    if hasattr(value, "to_numpy"):  # objects of pandas and similar libraries
        return [("columns", [str(name) for name in getattr(value, "columns", ())]), ("values", value.to_numpy())]
    if getattr(getattr(value, "dtype", None), "names", None) is not None:
        return [(name, value[name]) for name in value.dtype.names]
    if type(value).__module__.startswith("scipy.sparse"):
        return [(name, getattr(value, name)) for name in SPARSE if hasattr(value, name)]
    if hasattr(value, "__dict__"):
        return vars(value).items()
    if getattr(type(value), "__reduce__", None) is not object.__reduce__:
        return enumerate(value.__reduce__())
    raise ValueError(f"it holds a {type(value).__name__} at {path or 'its top'}")
