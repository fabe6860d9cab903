"""What benchmark.json says, as tables of text: for the terminal, for Markdown and for the page."""

import statistics
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from repro.benchmark.speed import TITLES
from repro.report import markdown as md
from repro.report.findings import FRAMEWORKS
from repro.text import printable, short

Json = dict[str, Any]

SPEED = """Seconds per epoch: the median over fresh processes, and the 95 % interval of the median (the whole range, of
five samples or fewer). Of each process a part of an epoch is timed in which nothing is compiled any more, and carried
on to a whole epoch; evaluation is not in it. Floor: the time over that of the epoch's matrix products alone, at this
machine's own rate. To the target: from the command to the end of the first evaluation that reaches it, measured in one
run; with ~ estimated, from the epochs that the measured run needed. Memory: the most that the process had
resident; the tutorial's loader has processes of its own, which are not counted. Tutorial and tuned: loops to compare
with, the tutorial's and one tuned by hand, of the same network."""
START = """Seconds, medians. Begin: run.sh, Python, the configuration, reading and checking the data. Import: the
framework and the trainer. Build: the data set on the device, the network, the records. Compile: the first call beyond
what its steps take later. Cold start: the time to the first step over the framework's own bare import and the compile.
First epoch: with all that is compiled in it."""
PRICES = """Of samples of the same rounds: the median of the ratios, and its 95 % interval. Where 1 lies in the
interval, there is no difference beyond the noise."""


@dataclass
class Table:
    """One table: what it is called, what its columns mean, and its cells as text; what is not known is empty."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]


def tables(content: Json) -> list[Table]:
    """All tables of one benchmark. A column in which no two rows differ, or nothing is known, is left out."""
    rows = [row for row in content["rows"] if row["seconds_per_epoch"]]
    target = content["settings"]["target"]
    columns = [
        *_which(rows),
        ("s per epoch", [measured(row["seconds_per_epoch"]) for row in rows]),
        ("Images/s", [_number(row["images_per_second"], "{:,.0f}") for row in rows]),
        ("x floor", [times_floor(row) for row in rows]),
        (f"To {100 * target:g} %" if target is not None else "", [_reached(row["to_target"]) for row in rows]),
        ("Memory", [_number(row["peak_memory"], "{:,.0f} MB", 1e-6) for row in rows]),
        ("GPU memory", [_number(row["gpu_memory"], "{:,.0f} MB", 1e-6) for row in rows]),
        ("J per epoch", [_number(row["joules_per_epoch"], "{:.1f}") for row in rows]),
        ("Fingerprint", [_marks(row) for row in rows]),
    ]
    started = [row for row in rows if row["startup"]]
    starts = [
        *_which(started),
        *((part.capitalize(), [f"{row['startup'][part]:.2f}" for row in started])
          for part in ("begin", "import", "build", "compile")),
        ("First step", [_number(row["first_step"], "{:.2f}") for row in started]),
        ("Cold start", [_number(row["cold_start"], "{:.2f} x") for row in started]),
        ("First epoch", [_number(row["first_epoch"], "{:.2f}") for row in started]),
    ]  # fmt: skip
    ratios = content["ratios"]
    prices = [
        ("Price", [TITLES[one["kind"]] for one in ratios]),
        *_which(ratios),
        ("Ratio", [measured(one) for one in ratios]),
        ("Rounds", [str(one["n"]) for one in ratios]),
    ]
    found = [("Speed", SPEED, columns), ("Start", START, starts), ("Prices", PRICES, prices)]
    return [_table(title, note, columns) for title, note, columns in found if columns[-1][1]]


def _which(rows: list[Json]) -> list[tuple[str, list[str]]]:
    """The columns that say of which cell a row is."""
    found: list[tuple[str, list[str]]] = []
    found.append(("Framework", [str(FRAMEWORKS.get(row["framework"], row["framework"])) for row in rows]))
    found.append(("Numerics", [str(row.get("numerics") or "") for row in rows]))
    found.append(("Batch", [str(row["batch_size"]) for row in rows]))
    for key, title in (("device", "Device"), ("threads", "Threads"), ("train_samples", "Images")):
        if len({row[key] for row in rows}) > 1:
            found.append((title, [str(row[key]) for row in rows]))
    return found


def _table(title: str, note: str, columns: list[tuple[str, list[str]]]) -> Table:
    kept = [(name, cells) for name, cells in columns if any(cells)]
    rows = [list(row) for row in zip(*(cells for _, cells in kept), strict=True)]
    return Table(title, " ".join(note.split()), [name for name, _ in kept], rows)


def facts(content: Json) -> list[str]:
    """What else there is to say, a line each: the floor, imports, caches, energy, what was left out."""
    said = [
        f"floor: {max(one['rates']) / 1e9:.0f} GFLOP/s in {one['dtype']} products (NumPy, threads: {one['threads']})"
        for one in content["floor"]
    ]
    bare = {FRAMEWORKS.get(name, name): seconds for name, seconds in content["imports"].items() if seconds}
    said += [f"bare import of {name}: {statistics.median(seconds):.2f} s" for name, seconds in bare.items()]
    listed = ", ".join(f"{name}={value}" for name, value in content["caches"].items())
    said.append(f"every sample compiles anew; variables of train.yaml that may keep it from that: {listed or 'none'}")
    said += [f"energy, {device}: {source}" for device, source in content["energy"].items()]
    return said + [f"left out: {what}" for what in content["skipped"]]


def show(content: Json, console: Console) -> None:
    """Prints the tables, the facts and, last and loudest, what to beware of."""
    content = printable(content)
    for table in tables(content):
        shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name in table.head:
            shown.add_column(name, overflow="fold")
        for row in table.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
    for line in facts(content):
        console.print(Text(line))
    for line in content["warnings"]:
        console.print(Text(f"warning: {line}", "yellow"))
    for line in content["disagreements"]:
        console.print(Text(f"NOT REPRODUCIBLE: {line}", "bold red"))


def markdown(content: Json) -> str:
    """The same for places that show Markdown."""
    content = printable(content)
    where = f"{content['machine']['cpu'].get('model')}, {content['created']}"
    lines = ["# How fast is training here?", "", md.escaped(where)]
    for line in content["disagreements"]:
        lines += ["", f"**NOT REPRODUCIBLE: {md.escaped(line)}**"]
    for line in content["warnings"]:
        lines += ["", f"Warning: {md.escaped(line)}"]
    for table in tables(content):
        lines += ["", f"## {table.title}", "", *md.table(table.head, table.rows), "", md.escaped(table.note)]
    lines += ["", *(f"- {md.escaped(line)}" for line in facts(content)), ""]
    return "\n".join(lines)


def measured(found: Json | None) -> str:
    """A median and its interval."""
    if found is None:
        return ""
    low_high = found["interval"]
    return f"{found['median']:.2f}" + (f" [{low_high[0]:.2f}, {low_high[1]:.2f}]" if low_high else "")


def times_floor(row: Json) -> str:
    """How many times the floor a row's time is."""
    return f"{row['seconds_per_epoch']['median'] / row['floor']:.1f}" if row["floor"] else ""


def _reached(found: Json | None) -> str:
    if found is None:
        return ""
    if found["seconds"] is None:
        return "not reached" if found["measured"] else ""
    return f"{'' if found['measured'] else '~'}{found['seconds']:.1f} s"


def _marks(row: Json) -> str:
    """The fingerprint, and whether it was the same in every sample where that is promised."""
    marks = " and ".join(map(short, row["fingerprints"][:2])) + (", …" if len(row["fingerprints"]) > 2 else "")
    if row["agree"] is False:
        return f"✗ {len(row['fingerprints'])} differ: {marks}"
    return f"✓ {marks}" if row["agree"] else marks


def _number(value: float | None, form: str, factor: float = 1) -> str:
    return "" if value is None else form.format(value * factor)
