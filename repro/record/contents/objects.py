"""Values of a described pickle: tensors of PyTorch, arrays of NumPy, and the parts of all other objects by their names."""

import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from repro.record.contents.pickles import Machine, Made
from repro.record.contents.values import DEEPEST, UnreadableError, Values, chunks, digest_of, joined

MOST_VISITED = 500_000  # objects, as a pickle may hold one object a million times
LARGEST_ARRAY = 1 << 31  # bytes of a scalar or an array within a pickle

REBUILT_TENSORS = {"torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor"}
REBUILT_PARAMETERS = {"torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state"}
RECONSTRUCTED = {"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"}
SCALARS = {"numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"}
FROM_BUFFER = {"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"}
STORED = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int64": 8, "int32": 4, "int16": 2, "int8": 1}
SIZES |= {"uint8": 1, "bool": 1, "complex64": 8, "complex128": 16}

Storage = Callable[[str], BinaryIO]
"""A function that opens a storage of PyTorch by its name."""


class View(NamedTuple):
    """The part of a storage that a tensor shows."""

    dtype: str
    name: str
    offset: int
    shape: Sequence[int]
    strides: Sequence[int]


class Walk:
    """Goes through a described object, and adds its values."""

    def __init__(self, values: Values, storage: Storage | None = None) -> None:
        self.values, self.storage = values, storage
        self.visited = 0

    def add(self, key: str, value: Any, depth: int = 0) -> None:
        self.visited += 1
        if depth > DEEPEST or self.visited > MOST_VISITED:
            raise UnreadableError("too many levels or objects")
        if isinstance(value, Made):
            self._add_made(key, value, depth)
        elif isinstance(value, dict):
            for name, inner in value.items():
                self.add(joined(key, name), inner, depth + 1)
        elif isinstance(value, list | tuple):
            for number, inner in enumerate(value):
                self.add(joined(key, number), inner, depth + 1)
        elif isinstance(value, str):
            self.values.text(key, value)
        elif isinstance(value, bytes | bytearray):
            self.values.data(key, digest_of([bytes(value)]))
        elif value is None or isinstance(value, bool | int | float):
            self.values.number(key, value)
        else:
            self.values.text(key, type(value).__name__)

    def _add_made(self, key: str, made: Made, depth: int) -> None:
        if made.name in REBUILT_TENSORS and self.storage and (view := _view(made)):
            self._add_tensor(key, view)
        elif made.name in REBUILT_PARAMETERS and made.arguments:
            self.add(key, made.arguments[0], depth + 1)
        elif made.name in RECONSTRUCTED | SCALARS | FROM_BUFFER and self._add_numpy(key, made):
            return
        elif not made.called:
            self.values.text(key, made.name)
        else:
            self._add_parts(key, made, depth)

    def _add_parts(self, key: str, made: Made, depth: int) -> None:
        """Adds the arguments, the state and the items of an object; one without any is its name."""
        state = made.state
        if isinstance(state, tuple) and len(state) == 2 and all(isinstance(part, dict | None) for part in state):
            state = {**(state[0] or {}), **(state[1] or {})}
        before = len(self.values.keys)
        for number, argument in enumerate(made.arguments):
            if not isinstance(argument, Made) or argument.called:
                self.add(joined(key, number), argument, depth + 1)
        if state is not None:
            self.add(key, state, depth + 1)
        self.add(key, made.items, depth + 1)
        if made.appended:
            self.add(key, made.appended, depth + 1)
        if len(self.values.keys) == before:
            self.values.text(key, made.name or "persistent id")

    def _add_tensor(self, key: str, view: View) -> None:
        assert self.storage is not None
        size = SIZES.get(view.dtype, 1)
        with self.storage(view.name) as file:
            if _is_contiguous(view):
                file.seek(view.offset * size)
                digest = digest_of(chunks(file, prod(view.shape) * size))
            else:
                layout = f"{view.offset} {[*view.strides]}".encode()
                digest = digest_of([layout, digest_of(iter(lambda: file.read(1 << 20), b"")).encode()])
        self.values.array(key, view.dtype, view.shape, digest)

    def _add_numpy(self, key: str, made: Made) -> bool:
        """Adds an array or a scalar of NumPy; False where it is not of the known form."""
        match made.name.rpartition(".")[2], made.arguments, made.state:
            case "_reconstruct", _, (_, tuple() as shape, Made() as dtype, bool() as fortran, bytes() as data):
                order = b"F" if fortran else b"C"
            case "_frombuffer", (bytes() | bytearray() as data, Made() as dtype, tuple() as shape, str() as how), _:
                order = how.encode()
            case "scalar", (Made() as dtype, bytes() as data), _:
                return self._add_scalar(key, dtype, data)
            case _:
                return False
        name = _dtype(dtype)
        self.values.array(key, name, shape, digest_of([b"" if order == b"C" else order, bytes(data)]))
        return True

    def _add_scalar(self, key: str, dtype: Made, data: bytes) -> bool:
        try:
            value = np.frombuffer(data, _dtype(dtype), 1)[0]
        except (TypeError, ValueError):
            return False
        self.values.number(key, value.item())
        return True


def _view(made: Made) -> View | None:
    """The storage of a tensor: its type, name, offset, shape and strides; None for another form."""
    match made.arguments:
        case (Made(name="", arguments=(("storage", Made() as kind, str() as name, *_),)), offset, shape, strides, *_):
            pass
        case _:
            return None
    numbers = [offset, *shape, *strides] if isinstance(shape, tuple) and isinstance(strides, tuple) else [-1]
    if not all(isinstance(number, int) and number >= 0 for number in numbers) or len(shape) != len(strides):
        return None
    last = kind.name.rpartition(".")[2]
    return View(STORED[last], name, offset, shape, strides) if last in STORED else None


def _is_contiguous(view: View) -> bool:
    """True if the elements lie one after another; strides of axes with one element say nothing."""
    axes = [(size, stride) for size, stride in zip(view.shape, view.strides, strict=True) if size != 1]
    if not axes:
        return True
    return axes[-1][1] == 1 and all(a[1] == b[0] * b[1] for a, b in pairwise(axes))


def _dtype(made: Made) -> str:
    """The type of NumPy that `dtype('f4', ...)` with its state stands for; in its short form, as `>f4`, where it has no name."""
    name = str(made.arguments[0] if made.arguments else "")
    order = made.state[1] if isinstance(made.state, tuple) and len(made.state) > 1 else ""
    if order == ">":
        return f">{name}"
    try:
        return np.dtype(name).name
    except (TypeError, ValueError):
        return name


def add_pickle(values: Values, file: BinaryIO, storage: Storage | None = None, key: str = "") -> None:
    """Adds the values of a pickle; nothing that it names is called or imported. UnreadableError where it is none."""
    described = Machine().read(file)
    Walk(values, storage).add(key, described)


def add_pickled(values: Values, data: bytes, key: str) -> None:
    """Adds the values of a pickle in memory."""
    add_pickle(values, io.BytesIO(data), key=key)
