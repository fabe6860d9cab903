"""Files that are carried between machines: JSON with a schema and a seal, checked against both when it is read.

Such a file may come from anybody, so whatever cannot be believed is refused in one line that says why.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import ReproError, UsageError
from repro.files import write_atomically

LARGEST = 1e100  # no number of a run comes near; beyond, what is computed from it could overflow
NESTED = 20  # levels, twice what a run needs; what walks over a file calls itself once a level

# How a shape reads: a type; a pattern of a text; a set of the values allowed; [shape] of each element; {key: shape} of
# the keys that must be there (`key?` may be missing), {...: shape} of every value; (shape, shape) for one or the other;
# object for anything.
NONE = type(None)
INTEGER, NUMBER, TEXT = (NONE, int), (NONE, int, float), (NONE, str)
SHA256 = re.compile("sha256:[0-9a-f]{64}")
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


@dataclass(frozen=True)
class Kind:
    """What one task writes into such files."""

    task: str
    file: str
    """As the task names it."""
    schema: int
    mark: str
    """The key that tells this kind from others."""
    shape: dict[str, Any]
    contradictions: Callable[[dict[str, Any]], Iterator[str]]
    """What does not follow from what, in a content of the right shape."""

    @property
    def name(self) -> str:
        """How an error begins."""
        return self.file.removesuffix(".json")

    @property
    def remedy(self) -> str:
        """What to do about a damaged file."""
        return f"copy it anew from where it was made, or make it again with `./run.sh {self.task}`"


def seal(content: dict[str, Any]) -> str:
    """SHA-256 of all but the seal itself, as JSON with sorted keys and no spaces.

    It shows that a file was cut short, damaged on its way or edited carelessly. It is no signature: whoever means to
    deceive computes it anew. Against that, only running the file's commands again helps.
    """
    rest = {key: value for key, value in content.items() if key != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def write(kind: Kind, path: Path, content: dict[str, Any]) -> None:
    """Adds schema and seal, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    content = json.loads(json.dumps({"schema": kind.schema} | content))
    content["seal"] = seal(content)
    _check(kind, path, content)
    write_atomically(path, json.dumps(content, indent=2).encode() + b"\n")


def read(path: Path, kind: Kind, *others: Kind) -> dict[str, Any]:
    """The content of a file of one of these kinds, checked.

    UsageError if it is not there, ReproError if it cannot be believed; they name the first kind where it is of none.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{kind.name}: {path} is not there; name a {kind.file} that `./run.sh {kind.task}` wrote"
        ) from None
    except OSError as error:
        raise ReproError(f"{kind.name}: {path} cannot be read ({error.strerror}); name a {kind.file}") from None
    except (ValueError, RecursionError):
        raise ReproError(f"{kind.name}: {path} is not JSON; {kind.remedy}") from None
    marked = [other for other in others if isinstance(content, dict) and other.mark in content]
    _check(marked[0] if marked else kind, path, content)
    return content


def _check(kind: Kind, path: Path, content: Any) -> None:
    if not isinstance(content, dict) or "schema" not in content or kind.mark not in content:
        raise ReproError(f"{kind.name}: {path} holds no results of `{kind.task}`; name a {kind.file} that it wrote")
    if _deeper(content, NESTED):
        raise ReproError(f"{kind.name}: {path} is nested deeper than {NESTED} levels; {kind.remedy}")
    if content["schema"] != kind.schema:
        raise ReproError(
            f"{kind.name}: {path} has schema {_short(content['schema'])}, this version reads {kind.schema}; "
            f"make it again with this version's `./run.sh {kind.task}`, or read it with the version that wrote it"
        )
    if content.get("seal") != seal(content):
        raise ReproError(
            f"{kind.name}: {path} was changed after it was written: its seal does not match; {kind.remedy}"
        )
    flaw = next(_misshapen(content, kind.shape, ""), None) or next(kind.contradictions(content), None)
    if flaw:
        raise ReproError(f"{kind.name}: {path} contradicts itself or the schema: {flaw}; {kind.remedy}")


def flaw(content: Any, shape: dict[str, Any]) -> str | None:
    """Why a file's content is not of a shape, in words; None where it is."""
    if _deeper(content, NESTED):
        return f"it is nested deeper than {NESTED} levels"
    return next(_misshapen(content, shape, ""), None)


def _deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(one, levels - 1) for one in inner)


def _misshapen(value: Any, shape: Any, place: str) -> Iterator[str]:
    """The places where a value is not of a shape."""
    if isinstance(shape, tuple):
        flaws = [list(_misshapen(value, one, place)) for one in shape]
        yield from [] if [] in flaws else flaws[-1]
    elif isinstance(shape, list) and isinstance(value, list):
        for index, element in enumerate(value):
            yield from _misshapen(element, shape[0], f"{place}[{index}]")
    elif isinstance(shape, dict) and isinstance(value, dict):
        shapes = dict.fromkeys(value, shape[...]) if ... in shape else shape
        for name, inner in shapes.items():
            key = name.removesuffix("?") if name not in value else name
            where = f"{place}.{key}".lstrip(".")
            if key in value:
                yield from _misshapen(value[key], inner, where)
            elif key == name:
                yield f"{where} is missing"
    elif not _fits(value, shape):
        yield f"{place} is {_short(value)}"


def _fits(value: Any, shape: Any) -> bool:
    if shape is object:
        return True
    if isinstance(shape, set):
        return isinstance(value, str | None) and value in shape
    if isinstance(shape, re.Pattern):
        return isinstance(value, str) and shape.fullmatch(value) is not None
    if type(value) is not shape:  # not isinstance: True is no number
        return False
    return shape not in (int, float) or abs(value) < LARGEST  # false for NaN, too


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
