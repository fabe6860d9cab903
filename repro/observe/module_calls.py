"""Calls of modules in the steps that `record --modules` names.

The lines of the kinds `call` and `backward`, which no framework has a part in: what it calls a module, and when, its own
watcher knows. Arrays are in the line as hashes, and `--keep`, which goes with it, stores their bytes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

from . import hashing, memory, recorder

NUMBERS = ("float", "bfloat", "int", "uint", "bool")  # how names of dtypes begin that are written
LONGEST = 400  # characters of a setting
LOSS = "loss"

steps: frozenset[int] = frozenset()  # the steps whose calls are written

Codes = dict[str, str]  # SHA-256 by the path of an array in what holds it


def start(text: str) -> None:
    """Begins with the steps that the variable REPRO_OBSERVE_MODULES names: `1,2`."""
    global steps
    steps = frozenset(int(word) for word in text.split(",") if word.isdigit())


def is_asked(step: int) -> bool:
    """True if the calls of this step are written."""
    return recorder.active is not None and step in steps


def following() -> int:
    """The number of the step that a forward pass belongs to which begins now: those counted, and one."""
    return recorder.active.steps + 1 if recorder.active is not None else 0


def write_call(step: int, number: int, module: str, kind: str, **content: Any) -> None:
    """Writes the call of a module: its path, its class, and `content` by the fields of `typed_lines.Call`, without those of None.

    `number`: the order in which the calls of the step began, from 1.
    """
    line = {"kind": "call", "step": step, "number": number, "module": module, "type": kind}
    _write({**line, **content})


def write_loss(step: int, number: int, outputs: Codes, exact: Optional[Codes] = None) -> None:
    """Writes the loss of the step, after its calls."""
    write_call(step, number, LOSS, LOSS, outputs=outputs, exact=exact)


def write_backward(step: int, gradients: Codes, exact: Optional[Codes] = None) -> None:
    """Writes the gradients as the backward pass made them, by the names of the channel `gradients`."""
    _write({"kind": "backward", "step": step, "gradients": gradients, "exact": exact})


def _write(line: dict[str, Any]) -> None:
    if recorder.active is not None:
        recorder.active.write({name: value for name, value in line.items() if value is not None})


def hashes(value: Any) -> Codes:
    """The hash of each array in nested containers, by its path; "" where the value is one array itself."""
    return hash_named(arrays(value))


def argument_hashes(args: Any, kwargs: Mapping[str, Any]) -> Codes:
    """The hashes of the arguments of a call: those by place are called `0`, `1`, those by name by their names."""
    return hash_named([*arrays(tuple(args)), *arrays(dict(kwargs))])


def hash_named(named: Iterable[tuple[str, Any]]) -> Codes:
    """The hash of each array by its name. A note names those that cannot be read: no step is less observed without."""
    codes: Codes = {}
    for name, array in named:
        try:
            code = hashing.hash_leaf(array)
        except Exception as error:
            code = None
            recorder.note(f"an array of a module, {name or type(array).__name__}, is not hashed: {error}")
        if code is not None:
            codes[name] = code
    return codes


def arrays(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the path and the array of each array of numbers in nested containers."""
    if is_array(value):
        yield "", value
        return
    for path, leaf in hashing.leaves(value):
        if is_array(leaf):
            yield path, leaf


def is_array(value: Any) -> bool:
    """True for an array of floats, integers or bools, of any framework."""
    dtype = getattr(value, "dtype", None)
    return hasattr(value, "shape") and not isinstance(value, type) and _dtype_name(dtype).startswith(NUMBERS)


def _dtype_name(dtype: Any) -> str:
    """`float32`, however a framework writes it."""
    return str(getattr(dtype, "name", dtype)).split(".")[-1]


def settings(attributes: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The public attributes of a module that are plain, as text: `eps` is `1e-05`, `padding` is `[1, 1]`, `activation` is `gelu`."""
    texts = ((name, setting_text(value)) for name, value in attributes if not name.startswith("_"))
    return {str(name): text for name, text in texts if text is not None and len(text) <= LONGEST}


def setting_text(value: Any) -> Optional[str]:
    """A number, a text, a dtype, a function's name, or a list of these; None of anything else."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return str(value)
    if isinstance(value, (list, tuple)):
        parts = [setting_text(part) for part in value]
        return None if None in parts else "[{}]".format(", ".join(str(part) for part in parts))
    if hasattr(value, "shape"):
        return _number_text(value)
    name = getattr(value, "__name__", None)  # of a function, or of a class such as jax.numpy.float32
    if callable(value) and isinstance(name, str):
        return name
    dtype = _dtype_name(value)
    return dtype if dtype.startswith((*NUMBERS, "complex")) and " " not in dtype else None


def _number_text(value: Any) -> Optional[str]:
    """The text of an array of one number; a larger one is no setting."""
    array = memory.to_numpy(value)
    return str(array.item()) if array.ndim == 0 else None
