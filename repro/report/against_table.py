"""Comparison with another benchmark, as a table."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.report.speed_tables import measured
from repro.trainers.benchmark.against import EQUAL, FASTER, INCOMPARABLE, SLOWER, SpeedVerdict

DRIFT = (
    "the noise is that of each benchmark's own minutes: before you blame the code, measure the old version again, now"
)
STYLES = {SLOWER: "bold red", FASTER: "green", EQUAL: "default", INCOMPARABLE: "dim"}


def show(verdicts: list[SpeedVerdict], console: Console) -> None:
    """Prints the verdicts, what changed last, where the eye rests."""
    title = Text("Against the older benchmark: new / old")
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name in ("cell", "ratio", "verdict", ""):
        table.add_column(name, overflow="fold")
    for one in sorted(verdicts, key=lambda one: (INCOMPARABLE, EQUAL, FASTER, SLOWER).index(one.verdict)):
        cells = (one.cell, measured(one.ratio), one.verdict, one.why)
        table.add_row(*(Text(text, STYLES[one.verdict]) for text in cells))
    console.print(table)
    counts = [f"{sum(one.verdict == verdict for one in verdicts)} {verdict}" for verdict in STYLES]
    console.print(Text(", ".join(counts)))
    if any(one.verdict in (SLOWER, FASTER) for one in verdicts):
        console.print(Text(DRIFT, "dim"))
