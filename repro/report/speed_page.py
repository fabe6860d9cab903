"""One benchmark as the page's template draws it: its tables, bars beside the times, and pictures of what they hide."""

from collections.abc import Callable
from typing import Any

from repro.report import charts
from repro.report.speed_tables import facts, tables

Json = dict[str, Any]

AXES = {"batch_size": "batch size", "threads": "threads", "train_samples": "training images"}
MEASURED = "s per epoch"  # the column that gets bars


def section(content: Json) -> Json:
    """What the template needs of the content of a benchmark.json."""
    rows = [row for row in content["rows"] if row["seconds_per_epoch"]]
    found = [vars(table) | {"bars": _bars(rows) if MEASURED in table.head else []} for table in tables(content)]
    model = content["machine"]["cpu"].get("model") or content["machine"]["platform"]
    return {key: content[key] for key in ("created", "seconds", "seal", "warnings", "disagreements", "settings")} | {
        "summary": f"{model}, {content['machine']['cpu'].get('usable')} cores",
        "tables": found,
        "measured": MEASURED,
        "facts": facts(content),
        "growth": [picture for axis in AXES for picture in _growth(rows, axis)],
        "rounds": _rounds(content, rows),
    }


def _bars(rows: list[Json]) -> list[Json]:
    """For each row its median and interval, in hundredths of the largest of all."""
    ends = [row["seconds_per_epoch"]["interval"] or [row["seconds_per_epoch"]["median"]] * 2 for row in rows]
    largest = max(high for _, high in ends)
    medians = [row["seconds_per_epoch"]["median"] for row in rows]
    places = [[round(100 * value / largest, 1) for value in (low, median, high)]
              for (low, high), median in zip(ends, medians, strict=True)]  # fmt: skip
    return [{"low": low, "median": median, "high": high} for low, median, high in places]


def _growth(rows: list[Json], axis: str) -> list[charts.Chart]:
    """A chart for each arithmetic, of the images a second over an axis: where that was varied, and nothing else was."""
    others = [key for key in ("numerics", "device", *AXES) if key != axis]
    groups = _grouped(rows, lambda row: tuple(row[key] for key in others))
    pictures = []
    for group in groups:
        lines = [
            charts.Line(by[0]["framework"], sorted((row[axis], row["images_per_second"]) for row in by))
            for by in _grouped(group, lambda row: (row["framework"],))
            if len(by) > 1
        ]
        if lines:
            points = [point for line in lines for point in line.points]
            scale = charts.linear([0.0, *(y for _, y in points)])
            title = f"Images a second, {_of(group[0], rows, others)}"
            pictures.append(charts.chart(title, lines, scale, charts.doubling(x for x, _ in points), AXES[axis]))
    return pictures


def _rounds(content: Json, rows: list[Json]) -> list[charts.Chart]:
    """A chart for each arithmetic and size, of the seconds per epoch over the rounds: how much is noise, or drift."""
    others = ["numerics", "device", *AXES]
    pictures = []
    for group in _grouped(rows, lambda row: tuple(row[key] for key in others)):
        lines = [charts.Line(row["framework"], _samples(content, row["cell"])) for row in group]
        if max(len(line.points) for line in lines) > 1:
            scale = charts.linear([0.0, *(y for line in lines for _, y in line.points)])
            title = f"Seconds per epoch, {_of(group[0], rows, others)}"
            pictures.append(charts.chart(title, lines, scale, x_label="round"))
    return pictures


def _samples(content: Json, cell: str) -> list[tuple[float, float]]:
    taken = [one for one in content["samples"] if one["cell"] == cell and one["status"] == "done"]
    return [(one["round"] + 1, one["seconds_per_epoch"]) for one in taken]


def _of(row: Json, rows: list[Json], keys: list[str]) -> str:
    """What a group of rows has in common, as far as not all rows have it: `deterministic, batch size 32`."""
    varied = [key for key in keys if key == "numerics" or len({other[key] for other in rows}) > 1]
    return ", ".join(f"{AXES[key]} {row[key]}" if key in AXES else str(row[key]) for key in varied)


def _grouped(rows: list[Json], key: Callable[[Json], tuple]) -> list[list[Json]]:
    """Rows of equal keys together, in the order of the first of each."""
    groups: dict[tuple, list[Json]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())
