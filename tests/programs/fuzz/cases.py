"""A call of an operation whose arguments are drawn, and what comes of it in one setting."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

LARGEST = 4096
"""The largest number of elements of a result whose values are kept; of all results the bits are."""
HALVES = ("bfloat16", "float16")


Array = np.ndarray | tuple[str, np.ndarray]
"""A result; with the name of its type, where NumPy has none of its numbers, which are given as float32."""


@dataclass(frozen=True)
class Case:
    """A call."""

    operation: str
    """The name in the table."""
    sample: str
    """What sets it apart from other calls of the operation: types, shapes, layout, kind of values."""
    compute: Callable[[bool], Sequence[Array]]
    """The results, then the gradients of the floating-point arguments, or one of both. True: of arguments in float64."""


@dataclass(frozen=True)
class Kept:
    """An array of a result. Halves and other small types of `ml_dtypes` are kept as float32."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    """A part of the SHA-256 of the bits, all NaN taken for one."""
    data: str | None
    """Values in base64, None for arrays above LARGEST."""

    @property
    def array(self) -> np.ndarray | None:
        if self.data is None:
            return None
        return np.frombuffer(base64.b64decode(self.data), _stored(self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class Outcome:
    """What came of a call: "computed", "refused" or "failed"; and the arrays, or else the error's text."""

    operation: str
    sample: str
    status: str
    text: str
    arrays: tuple[Kept, ...]


def outcome(case: Case, double: bool) -> Outcome:
    """Calls an operation."""
    try:
        arrays = tuple(kept(each) for each in case.compute(double))
    except Exception as error:  # whatever an operation raises is its outcome
        chain = [error, error.__cause__, error.__context__]
        refused = any(type(each).__name__ == "RefusedError" for each in chain) or "portable numerics: " in str(error)
        text = f"{type(error).__name__}: {error}"
        return Outcome(case.operation, case.sample, "refused" if refused else "failed", text[:500], ())
    return Outcome(case.operation, case.sample, "computed", "", arrays)


def kept(array: Array) -> Kept:
    """The digest of an array, and a small one's values."""
    name, array = array if isinstance(array, tuple) else (array.dtype.name, array)
    array = np.array(array, _stored(name), order="C")
    if array.dtype.kind in "fc":
        parts = array.reshape(-1).view(array.real.dtype)
        parts[np.isnan(parts)] = np.nan
    data = base64.b64encode(array.tobytes()).decode() if array.size <= LARGEST else None
    digest = sha256(repr((name, array.shape)).encode() + array.tobytes()).hexdigest()[:16]
    return Kept(name, array.shape, digest, data)


def _stored(name: str) -> np.dtype:
    """The type of NumPy in which numbers are kept: they fit into it exactly."""
    if name == "complex32":
        return np.dtype(np.complex64)
    return np.dtype(np.float32) if name.startswith(("bfloat", "float8_", "float4_", "float6_")) else np.dtype(name)


def write(outcomes: Iterator[Outcome], path: Path) -> None:
    """Writes a line of JSON for each outcome as it comes, so that a crash loses the last alone."""
    with path.open("w") as file:
        for each in outcomes:
            file.write(json.dumps(asdict(each)) + "\n")
            file.flush()


def read(path: Path) -> dict[tuple[str, str], Outcome]:
    """Outcomes by operation and sample."""
    results = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        arrays = tuple(Kept(**{**each, "shape": tuple(each["shape"])}) for each in row.pop("arrays"))
        results[row["operation"], row["sample"]] = Outcome(**row, arrays=arrays)
    return results
