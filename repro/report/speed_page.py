"""A benchmark as the page's template draws it.

Its tables, bars beside the times, and pictures of what they hide.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from repro.report import charts
from repro.report.speed_tables import Table, facts, tables
from repro.trainers.benchmark.results import Benchmark, Row

AXES = {"batch_size": "batch size", "threads": "threads", "train_samples": "training images"}
MEASURED = "s per epoch"  # the column that gets bars


@dataclass
class Bar:
    """A median and its interval, in hundredths of the largest of all."""

    low: float
    median: float
    high: float


@dataclass
class SpeedSection:
    """A benchmark's part of the page."""

    content: Benchmark
    summary: str
    tables: list[tuple[Table, list[Bar]]]
    """Tables, with a bar for each row if the table has the column MEASURED."""
    facts: list[str]
    pictures: dict[str, list[charts.Chart]]
    """Charts by heading."""
    measured: str = MEASURED


def section(content: Benchmark) -> SpeedSection:
    """The part of the page about one benchmark.json."""
    rows = [row for row in content.rows if row.seconds_per_epoch]
    cpu = content.machine.cpu
    growth = [picture for axis in AXES for picture in _growth(rows, axis)]
    return SpeedSection(
        content,
        f"{cpu.model or content.machine.platform}, {cpu.usable} cores",
        [(table, _bars(rows) if MEASURED in table.head else []) for table in tables(content)],
        facts(content),
        {"How the cost grows": growth, "Round by round": _rounds(content, rows)},
    )


def _bars(rows: list[Row]) -> list[Bar]:
    summaries = [row.seconds_per_epoch for row in rows if row.seconds_per_epoch]
    ends = [(low, one.median, high) for one in summaries for low, high in [one.interval or (one.median, one.median)]]
    largest = max(high for _, _, high in ends)
    return [Bar(*(round(100 * end / largest, 1) for end in each)) for each in ends]


def _growth(rows: list[Row], axis: str) -> list[charts.Chart]:
    """A chart for each arithmetic, of the images a second over an axis: where that was varied, and nothing else was."""
    others = [key for key in ("numerics", "device", *AXES) if key != axis]
    pictures = []
    for group in _grouped(rows, lambda row: tuple(getattr(row, key) for key in others)):
        lines = [
            charts.Line(by[0].framework, sorted((getattr(row, axis), row.images_per_second or 0.0) for row in by))
            for by in _grouped(group, lambda row: row.framework)
            if len(by) > 1
        ]
        if lines:
            points = [point for line in lines for point in line.points]
            title = f"Images a second, {_shared(group[0], rows, others)}"
            x_scale = charts.doubling(x for x, _ in points)
            pictures.append(charts.chart(title, lines, _from_zero(y for _, y in points), x_scale, AXES[axis]))
    return pictures


def _rounds(content: Benchmark, rows: list[Row]) -> list[charts.Chart]:
    """A chart for each arithmetic and size, of the seconds per epoch over the rounds: how much is noise, or drift."""
    others = ["numerics", "device", *AXES]
    pictures = []
    for group in _grouped(rows, lambda row: tuple(getattr(row, key) for key in others)):
        times = [(row.framework, content.times(row.cell)) for row in group]
        lines = [charts.Line(name, [(number + 1, y) for number, y in by_round.items()]) for name, by_round in times]
        if max(len(line.points) for line in lines) > 1:
            scale = _from_zero(y for line in lines for _, y in line.points)
            title = f"Seconds per epoch, {_shared(group[0], rows, others)}"
            pictures.append(charts.chart(title, lines, scale, x_label="round"))
    return pictures


def _from_zero(values: Iterable[float]) -> charts.Scale:
    return charts.linear([0.0, *values])


def _shared(row: Row, rows: list[Row], keys: list[str]) -> str:
    """The values that a group of rows shares, and not all rows have: `deterministic, batch size 32`."""
    varied = [key for key in keys if key == "numerics" or len({getattr(other, key) for other in rows}) > 1]
    return ", ".join(f"{AXES[key]} {getattr(row, key)}" if key in AXES else str(getattr(row, key)) for key in varied)


def _grouped(rows: list[Row], key: Callable[[Row], Hashable]) -> list[list[Row]]:
    """Rows of equal keys together, in the order of the first of each."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())
