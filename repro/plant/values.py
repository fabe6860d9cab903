"""First values of parts, in files: numbers and texts as JSON, arrays as their bytes.

`values.json` has, by moment and part, a digest and the items. An array whose elements are all equal takes one element;
others lie beside it, in `N.bin`.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

FILE = "values.json"
LARGEST = 1 << 30
"""The most bytes of arrays that are kept for a process."""

Items = dict[str, Any]
"""The values of a part: what JSON can hold, or arrays."""


class Array(NamedTuple):
    """An array: its dtype as the framework spells it, its shape, its bytes in C order."""

    dtype: str
    shape: tuple[int, ...]
    content: bytes


def digest(items: Items) -> str:
    """The SHA-256 of the items."""
    sha = hashlib.sha256()
    for name, value in sorted(items.items()):
        head = [value.dtype, list(value.shape)] if isinstance(value, Array) else value
        sha.update(f"{name} {json.dumps(head)}\n".encode())
        if isinstance(value, Array):
            sha.update(value.content)
    return sha.hexdigest()


class Writer:
    """The file of one process, written anew with each moment."""

    def __init__(self, folder: str, with_values: bool):
        self.folder, self.with_values = folder, with_values
        self.moments: dict[str, Any] = {}
        self.size = self.files = 0

    def add(self, moment: str, parts: Iterable[tuple[str, Items]]) -> None:
        """Adds the parts of a moment, with their names; of one at a time the values are in memory."""
        described: dict[str, Any] = {}
        for name, items in parts:
            described[name] = {"digest": digest(items)}
            if self.with_values:
                described[name]["items"] = {key: self._described(value) for key, value in items.items()}
        self.moments[moment] = described
        unfinished = os.path.join(self.folder, f"{FILE}.{os.getpid()}")
        with open(unfinished, "w") as file:
            json.dump(self.moments, file)
        os.replace(unfinished, os.path.join(self.folder, FILE))

    def _described(self, value: Any) -> Any:
        if not isinstance(value, Array):
            return {"value": value}
        head = {"dtype": value.dtype, "shape": list(value.shape)}
        count = 1
        for size in value.shape:
            count *= size
        one = value.content[: len(value.content) // count] if count else b""
        if one * count == value.content:
            return {**head, "repeated": one.hex()}
        self.size += len(value.content)
        if self.size > LARGEST:
            return {"large": True}
        self.files += 1
        with open(os.path.join(self.folder, f"{self.files}.bin"), "wb") as file:
            file.write(value.content)
        return {**head, "file": f"{self.files}.bin"}


def read(folder: str, moment: str, part: str) -> Optional[Items]:
    """The items of a part at a moment, as the first process had them; None if it had no such part."""
    with open(os.path.join(folder, FILE)) as file:
        described = json.load(file).get(moment, {}).get(part, {})
    if "items" not in described:
        return None
    return {name: _value(folder, item) for name, item in described["items"].items() if "large" not in item}


def _value(folder: str, item: dict[str, Any]) -> Any:
    if "value" in item:
        return item["value"]
    shape = tuple(item["shape"])
    if "file" in item:
        with open(os.path.join(folder, item["file"]), "rb") as file:
            return Array(item["dtype"], shape, file.read())
    count = 1
    for size in shape:
        count *= size
    return Array(item["dtype"], shape, bytes.fromhex(item["repeated"]) * count)
