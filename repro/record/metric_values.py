"""One value of a metric, and the metrics in a dict of names and numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from repro.record.metric_names import is_metric, is_place, may_be_score
from repro.structs import Struct

AFTER = "after "  # begins a place that another line named
DEEPEST = 4  # levels of dicts within a dict that are walked through
OF_SAMPLES = frozenset(
    [
        "id",
        "ids",
        "index",
        "idx",
        "image",
        "image_id",
        "file",
        "filename",
        "path",
        "text",
        "label",
        "target",
        "pred",
        "prediction",
        "input",
        "output",
    ]
)
"""Keys of a row that is about a sample, and not about the program."""


class Metric(Struct):
    """A value of a metric."""

    source: str
    """The library that it was handed to, `stdout`, `stderr`, or a file."""
    name: str
    at: str
    """Where in the run it was logged, as far as that is known: `step 10`, `epoch 3`, or `after epoch 3` if another line named it."""
    value: str
    """The number, as text that holds all its bits, or as it was printed."""


def number(value: Any) -> str | None:
    """A number of JSON or Python as text with all its bits; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return repr(value)


def of_row(source: str, row: Mapping[str, Any], texts: bool = False) -> list[Metric]:
    """The metrics of a dict: those beside an epoch or a step, or else its scores; none of a row about a sample.

    `texts`: its numbers are text, as in CSV.
    """
    flat = dict(_flat(row, texts))
    if not OF_SAMPLES.isdisjoint(key.lower() for key in row):
        return []
    places = {name: value for name, value in flat.items() if is_place(name)}
    at = ", ".join(f"{name} {value}" for name, value in places.items())
    return [
        Metric(source=source, name=name, at=at, value=value)
        for name, value in flat.items()
        if is_metric(name) and (places or may_be_score(name))
    ]


def _flat(row: Mapping[str, Any], texts: bool, before: str = "", level: int = 0) -> Iterator[tuple[str, str]]:
    for key, value in row.items():
        name = f"{before}{key}".strip()
        if isinstance(value, dict) and level < DEEPEST:
            yield from _flat(value, texts, f"{name}.", level + 1)
        elif texts and _is_number(value):
            yield name, str(value).strip()
        elif (text := number(value)) is not None:
            yield name, text


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
