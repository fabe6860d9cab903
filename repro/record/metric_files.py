"""Metrics in files that a program writes: CSV with a header, JSON lines, trainer_state.json, metrics.json and its like.

A file about samples, such as predictions, is none. What cannot be read is left out.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.files import parsed, read
from repro.record.metric_names import is_metric
from repro.record.metric_values import Metric, number, of_row

LARGEST = 16 << 20  # bytes
LINES, TABLES = {".jsonl", ".ndjson"}, {".csv": ",", ".tsv": "\t"}
NAMED = re.compile(r"metric|result|score|eval|history|summary|stats|trainer_state|log", re.IGNORECASE)
"""Names of JSON files that hold metrics."""
HISTORY = "log_history"  # of trainer_state.json


def may_hold(path: Path) -> bool:
    """True if a file of this name may hold metrics."""
    if path.suffix == ".json":
        return NAMED.search(path.stem) is not None
    return path.suffix in LINES or path.suffix in TABLES


def metrics(name: str, path: Path) -> list[Metric]:
    """The metrics of a file, in the order in which they are in it."""
    try:
        text = read(path, LARGEST)
        if path.suffix == ".json":
            return list(_of_json(name, parsed(text)))
        if path.suffix in TABLES:
            rows: Any = csv.DictReader(text.decode().splitlines(), delimiter=TABLES[path.suffix])
            return [metric for row in rows if None not in row for metric in of_row(name, row, texts=True)]
        rows = [parsed(line) for line in text.splitlines() if line.strip()]
        return [metric for row in rows if isinstance(row, dict) for metric in of_row(name, row)]
    except (OSError, ValueError, csv.Error):
        return []


def _of_json(source: str, content: Any) -> Iterator[Metric]:
    """The metrics of a JSON file: rows in a list, or names with numbers or lists of numbers."""
    rows = content.get(HISTORY) if isinstance(content, dict) else content
    if isinstance(rows, list):
        for row in rows:
            yield from of_row(source, row) if isinstance(row, dict) else ()
    elif isinstance(content, dict):
        yield from of_row(source, content)
        for name, values in content.items():
            if isinstance(values, list) and is_metric(name):
                texts = [number(value) for value in values]
                yield from (
                    Metric(source=source, name=name, at=f"value {n}", value=text)
                    for n, text in enumerate(texts, 1)
                    if text is not None
                )
