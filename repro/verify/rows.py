"""Rows of result files: a sample each, in any order.

JSON lines, a list in JSON, CSV, lines of text, and arrays of NumPy along their first axis. Nothing is unpickled.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from repro.files import parsed, read
from repro.record.metric_names import NO_METRICS, words

LARGEST = 256 << 20  # bytes

Rows = Counter[bytes]


def of_folder(folder: Path) -> dict[str, Rows]:
    """The rows of each file below a folder that has some, by the file's name."""
    result = {}
    for path in sorted(folder.rglob("*")):
        rows = of_file(path) if path.is_file() else None
        if rows:
            result[str(path.relative_to(folder))] = rows
    return result


def of_file(path: Path) -> Rows | None:
    """The rows of a file; None if it has none that can be read."""
    try:
        if path.suffix == ".npy":
            return _of_arrays([np.load(path, allow_pickle=False)])
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return _of_arrays([arrays[name] for name in sorted(arrays.files)])
        if path.suffix in (".jsonl", ".ndjson"):
            return Counter(_of_json(parsed(line)) for line in read(path, LARGEST).splitlines() if line.strip())
        if path.suffix == ".json":
            content = parsed(read(path, LARGEST))
            return Counter(map(_of_json, content)) if isinstance(content, list) else None
        if path.suffix in (".csv", ".tsv"):
            return _of_table(read(path, LARGEST).decode(), "," if path.suffix == ".csv" else "\t")
        return Counter(read(path, LARGEST).splitlines()) if path.suffix == ".txt" else None
    except (OSError, ValueError, EOFError, csv.Error):
        return None


def _of_arrays(arrays: Iterable[np.ndarray]) -> Rows | None:
    """The rows of arrays of one length; of several, what they hold at one index is a row."""
    listed = [array for array in arrays if array.ndim]
    if not listed or len({len(array) for array in listed}) > 1:
        return None
    return Counter(b"".join(array[index].tobytes() for array in listed) for index in range(len(listed[0])))


def _of_table(text: str, delimiter: str) -> Rows:
    header, *rows = list(csv.reader(text.splitlines(), delimiter=delimiter)) or [[]]
    kept = [index for index, name in enumerate(header) if _is_kept(name)]
    return Counter("\0".join(row[index] for index in kept if index < len(row)).encode() for row in rows)


def _of_json(row: Any) -> bytes:
    if isinstance(row, dict):
        row = {name: value for name, value in row.items() if _is_kept(name)}
    return json.dumps(row, sort_keys=True).encode()


def _is_kept(name: str) -> bool:
    """True unless a column holds times or numbers of batches."""
    return not {*NO_METRICS, "batch"}.intersection(words(name))
