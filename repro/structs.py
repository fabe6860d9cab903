"""JSON files as typed structs, with a checksum.

Such a file is carried between machines, and may come from anybody: whatever cannot be believed is refused in one line that
says why, and what is left holds no character that a terminal would obey.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from repro.errors import ReproError, UsageError
from repro.files import read_json, write_json
from repro.text import printable

LARGEST = 1e100  # no number of a run comes near; beyond, what is computed from it could overflow
NESTED = 20  # levels, twice what a run needs; what walks over a file calls itself once a level

Number = Annotated[float, Meta(gt=-LARGEST, lt=LARGEST)]
"""A finite number, not NaN."""
Integer = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""An integer that every JSON reader represents exactly."""
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Fingerprint = Annotated[str, Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
Time = Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\Z")]
"""A time, UTC, to the second."""

T = TypeVar("T")


class Struct(msgspec.Struct, kw_only=True):
    """An object of JSON: its keys are the fields; a field with the default UNSET may be missing. Other keys are ignored."""


class Checked(Struct):
    """A whole file."""

    schema: int
    seal: str = ""
    """The SHA-256 of all else, see checksum()."""


C = TypeVar("C", bound=Checked)


@dataclass(frozen=True)
class FileKind(Generic[C]):
    """Files that one task writes."""

    task: str
    file: str
    """The name that the task gives it."""
    schema: int
    mark: str
    """The key that distinguishes this kind from others."""
    content: type[C]
    contradictions: Callable[[C], Iterator[str]]
    """A function that yields contradictions within content of the right types."""

    @property
    def name(self) -> str:
        """The beginning of an error."""
        return self.file.removesuffix(".json")

    @property
    def remedy(self) -> str:
        """The remedy for a damaged file."""
        return f"copy it again from where it was made, or make it again with `./run.sh {self.task}`"


def checksum(content: dict[str, Any]) -> str:
    """The SHA-256 of all but the checksum itself, the key `seal`, as JSON with sorted keys and no spaces.

    It shows that a file was cut short, damaged on its way or edited carelessly. It is no signature: whoever means to
    deceive computes it anew. Against that, only running the file's commands again helps.
    """
    rest = {key: value for key, value in content.items() if key != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def write(kind: FileKind[C], path: Path, content: C) -> None:
    """Adds the checksum, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    plain = json.loads(json.dumps(msgspec.to_builtins(content)))
    del plain["seal"]  # it comes last
    plain["seal"] = checksum(plain)
    _check(kind, path, plain)
    write_json(path, plain)


def read(path: Path, kind: FileKind[C], *others: FileKind[Any]) -> C:
    """The content of a file of one of these kinds, checked.

    UsageError if it is not there, ReproError if it cannot be believed; they name the first kind where it is of none.
    """
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise UsageError(
            f"{kind.name}: {path} does not exist; name a {kind.file} that `./run.sh {kind.task}` wrote"
        ) from None
    except OSError as error:
        raise ReproError(f"{kind.name}: {path} cannot be read ({error.strerror}); name a {kind.file}") from None
    except ValueError:
        raise ReproError(f"{kind.name}: {path} is not JSON; {kind.remedy}") from None
    marked = [other for other in others if isinstance(content, dict) and other.mark in content]
    kinds: list[FileKind[C]] = [*marked, kind]
    return _check(kinds[0], path, content)


def _check(kind: FileKind[C], path: Path, content: Any) -> C:
    if not isinstance(content, dict) or "schema" not in content or kind.mark not in content:
        raise ReproError(f"{kind.name}: {path} holds no results of `{kind.task}`; name a {kind.file} that it wrote")
    if _is_deeper(content, NESTED):
        raise ReproError(f"{kind.name}: {path} is nested deeper than {NESTED} levels; {kind.remedy}")
    if content["schema"] != kind.schema:
        raise ReproError(
            f"{kind.name}: {path} has schema {shortened(content['schema'])}, this version reads {kind.schema}; "
            f"make it again with this version's `./run.sh {kind.task}`, or read it with the version that wrote it"
        )
    if content.get("seal") != checksum(content):
        raise ReproError(
            f"{kind.name}: {path} was changed after it was written: its checksum does not match; {kind.remedy}"
        )
    try:
        result = converted(content, kind.content)
        flaw = next(kind.contradictions(result), None)
    except Flaw as error:
        flaw = str(error)
    if flaw:
        raise ReproError(f"{kind.name}: {path} contradicts itself or the schema: {flaw}; {kind.remedy}")
    return result


class Flaw(ValueError):  # noqa: N818
    """A mismatch between content and its type, in words."""


def converted(content: Any, kind: type[T]) -> T:
    """Converts JSON to a struct, each text printable. Flaw if it is not of the type."""
    check_depth(content)
    try:
        return msgspec.convert(printable(content), kind)
    except msgspec.ValidationError as error:
        raise Flaw(str(error)) from None


def check_depth(content: Any) -> None:
    """Raises Flaw if content is nested so deep that to walk through it would exceed Python's recursion limit."""
    if _is_deeper(content, NESTED):
        raise Flaw(f"it is nested deeper than {NESTED} levels")


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deeper(one, levels - 1) for one in inner)


def shortened(value: Any) -> str:
    """A value that is no longer than an error can hold."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
