"""benchmark.json as tables of text.

For the terminal, for Markdown and for the page.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from repro.report import markdown as md
from repro.report.findings import FRAMEWORK_TITLES
from repro.text import short
from repro.trainers.benchmark.results import Benchmark, Ratio, Row, Summary, TimeToTarget
from repro.trainers.benchmark.speed import TITLES

SPEED = """
Seconds per epoch: the median over fresh processes, and the 95 % interval of the median (the whole range, of five samples or fewer).
Of each process a part of an epoch is timed in which nothing is compiled any more, and carried on to a whole epoch; evaluation is not in it.
x roofline: the time over that of the epoch's matrix products alone, at this machine's own rate.
To the target: from the command to the end of the first evaluation that reaches it, measured in one run; with ~ estimated, from the epochs that the measured run needed.
Memory: the most that the process had resident; the tutorial's loader has processes of its own, which are not counted.
Tutorial and tuned: loops to compare with, the tutorial's and one tuned by hand, of the same network.
"""
START = """
Seconds, medians.
Begin: run.sh, Python, the configuration, reading and checking the data.
Import: the framework and the trainer.
Build: the data set on the device, the network, the records.
Compile: the first call beyond what its steps take later.
Cold start: the time to the first step over the framework's own bare import and the compile.
First epoch: with all that is compiled in it.
"""
PRICES = """
Of samples of the same rounds: the median of the ratios, and its 95 % interval.
Where 1 lies in the interval, there is no difference beyond the noise.
"""

Column = tuple[str, list[str]]
"""Its head, and its cells."""


@dataclass
class Table:
    """A table as text; what is not known is empty."""

    title: str
    note: str
    """The meaning of its columns."""
    head: list[str]
    rows: list[list[str]]


def tables(content: Benchmark) -> list[Table]:
    """All tables of a benchmark. A column in which no two rows differ, or nothing is known, is left out."""
    result = [
        ("Speed", SPEED, _speed(content)),
        ("Start", START, _start(content)),
        ("Prices", PRICES, _prices(content)),
    ]
    return [_table(title, note, columns) for title, note, columns in result if columns[-1][1]]


def _speed(content: Benchmark) -> list[Column]:
    rows = [row for row in content.rows if row.seconds_per_epoch]
    target = content.settings.target
    return [
        *_which(rows),
        ("s per epoch", [measured(row.seconds_per_epoch) for row in rows]),
        ("Images/s", [_number(row.images_per_second, "{:,.0f}") for row in rows]),
        ("x roofline", [_times_roofline(row) for row in rows]),
        (f"To {100 * target:g} %" if target is not None else "", [_reached(row.to_target) for row in rows]),
        ("Memory", [_megabytes(row.peak_memory) for row in rows]),
        ("GPU memory", [_megabytes(row.gpu_memory) for row in rows]),
        ("J per epoch", [_number(row.joules_per_epoch, "{:.1f}") for row in rows]),
        ("Fingerprint", [_fingerprints(row) for row in rows]),
    ]


def _start(content: Benchmark) -> list[Column]:
    started = [(row, row.startup) for row in content.rows if row.seconds_per_epoch and row.startup]
    rows = [row for row, _ in started]
    return [
        *_which(rows),
        ("Begin", [f"{startup.begin:.2f}" for _, startup in started]),
        ("Import", [f"{startup.import_:.2f}" for _, startup in started]),
        ("Build", [f"{startup.build:.2f}" for _, startup in started]),
        ("Compile", [f"{startup.compile:.2f}" for _, startup in started]),
        ("First step", [_number(row.first_step, "{:.2f}") for row in rows]),
        ("Cold start", [_number(row.cold_start, "{:.2f} x") for row in rows]),
        ("First epoch", [_number(row.first_epoch, "{:.2f}") for row in rows]),
    ]


def _prices(content: Benchmark) -> list[Column]:
    return [
        ("Price", [TITLES[ratio.kind] for ratio in content.ratios]),
        *_which(content.ratios),
        ("Ratio", [measured(ratio) for ratio in content.ratios]),
        ("Rounds", [str(ratio.n) for ratio in content.ratios]),
    ]


def _which(rows: Sequence[Row | Ratio]) -> list[Column]:
    """The columns that name the cell of a row."""
    columns = [
        ("Framework", [FRAMEWORK_TITLES.get(row.framework, row.framework) for row in rows]),
        ("Numerics", [row.numerics if isinstance(row, Row) else "" for row in rows]),
        ("Batch", [str(row.batch_size) for row in rows]),
    ]
    for key, title in (("device", "Device"), ("threads", "Threads"), ("train_samples", "Images")):
        cells = [str(getattr(row, key)) for row in rows]
        if len(set(cells)) > 1:
            columns.append((title, cells))
    return columns


def _table(title: str, note: str, columns: list[Column]) -> Table:
    kept = [(name, cells) for name, cells in columns if any(cells)]
    rows = [list(row) for row in zip(*(cells for _, cells in kept), strict=True)]
    return Table(title, " ".join(note.split()), [name for name, _ in kept], rows)


def facts(content: Benchmark) -> list[str]:
    """Further facts, one per line: the roofline, imports, caches, energy, what was left out."""
    lines = [
        f"roofline: {max(one.rates) / 1e9:.0f} GFLOP/s in {one.dtype} products (NumPy, threads: {one.threads})"
        for one in content.rooflines
    ]
    imports = {FRAMEWORK_TITLES.get(name, name): seconds for name, seconds in content.imports.items() if seconds}
    lines += [f"bare import of {name}: {statistics.median(seconds):.2f} s" for name, seconds in imports.items()]
    caches = ", ".join(f"{name}={value}" for name, value in content.caches.items())
    lines.append(f"every sample compiles anew; variables of train.yaml that may keep it from that: {caches or 'none'}")
    lines += [f"energy, {device}: {source}" for device, source in content.energy.items()]
    return lines + [f"left out: {what}" for what in content.skipped]


def show(content: Benchmark, console: Console) -> None:
    """Prints the tables, the facts and, last and loudest, what to beware of."""
    for table in tables(content):
        show_table(table, console)
    for line in facts(content):
        console.print(Text(line))
    for line in content.warnings:
        console.print(Text(f"warning: {line}", "yellow"))
    for line in content.disagreements:
        console.print(Text(f"NOT REPRODUCIBLE: {line}", "bold red"))


def show_table(table: Table, console: Console) -> None:
    """Prints one table, without its note."""
    shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name in table.head:
        shown.add_column(name, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    console.print(shown)


def markdown(content: Benchmark) -> str:
    """The tables for places that show Markdown."""
    lines = ["# How fast is training here?", "", md.escaped(f"{content.machine.cpu.model}, {content.created}")]
    for line in content.disagreements:
        lines += ["", f"**NOT REPRODUCIBLE: {md.escaped(line)}**"]
    for line in content.warnings:
        lines += ["", f"Warning: {md.escaped(line)}"]
    for table in tables(content):
        lines += ["", f"## {table.title}", "", *md.table(table.head, table.rows), "", md.escaped(table.note)]
    lines += ["", *(f"- {md.escaped(line)}" for line in facts(content)), ""]
    return "\n".join(lines)


def measured(summary: Summary | None) -> str:
    """A median and its interval."""
    if summary is None:
        return ""
    interval = f" [{summary.interval[0]:.2f}, {summary.interval[1]:.2f}]" if summary.interval else ""
    return f"{summary.median:.2f}{interval}"


def _times_roofline(row: Row) -> str:
    return f"{row.seconds_per_epoch.median / row.roofline:.1f}" if row.seconds_per_epoch and row.roofline else ""


def _reached(target: TimeToTarget | None) -> str:
    if target is None:
        return ""
    if target.seconds is None:
        return "not reached" if target.measured else ""
    return f"{'' if target.measured else '~'}{target.seconds:.1f} s"


def _fingerprints(row: Row) -> str:
    """The fingerprint, and whether it was the same in every sample where that is promised."""
    text = " and ".join(map(short, row.fingerprints[:2])) + (", …" if len(row.fingerprints) > 2 else "")
    if row.agree is False:
        return f"✗ {len(row.fingerprints)} differ: {text}"
    return f"✓ {text}" if row.agree else text


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.0f} MB"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
