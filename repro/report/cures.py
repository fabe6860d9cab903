"""Cures that `verify --cure` has found, in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.text import listed, printable
from repro.verify.cure import Cure, lines


def show(cures: list[Cure], console: Console) -> None:
    """Prints what was tried for each question that differs, and the lines to add."""
    if not cures:
        console.print(Text("--cure: nothing differs that a remedy is known for"))
    for cure in cures:
        title = Text(f"cure of {cure.question}")
        table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        table.add_column("remedies", overflow="fold")
        table.add_column("runs with them", overflow="fold")
        for attempt in cure.attempts:
            table.add_row(Text(attempt.name), Text(printable(attempt.result)))
        if cure.attempts:
            console.print(table)
        for line in _sentences(cure):
            console.print(Text(printable(line)))


def _sentences(cure: Cure) -> list[str]:
    """The cure in words, and the lines to add."""
    attempt = cure.found
    if cure.hindrance:
        return [f"No cure of {cure.question} was tried: {cure.hindrance}."]
    unequal, of = cure.unequal
    without = f"{unequal} of {of} runs without differ from the baseline"
    if attempt is None:
        return [f"No set of these gives the same bits; {without}."]
    several = ", of which none can be left out" if len(attempt.remedies) > 1 else ""
    runs = f"{attempt.runs} of {attempt.runs} runs with it are equal, {without}"
    sentences = [f"The smallest set with the same bits{several}: {attempt.name}. {runs}."]
    if cure.price:
        with_it, plain = cure.price
        sentences.append(
            f"It takes {with_it / plain:.2f} times the time: {with_it:.1f} s a run, {plain:.1f} s without."
        )
    sentences += [f"Outputs that still differ: {listed(attempt.outputs)}."] if attempt.outputs else []
    return [*sentences, "Add:", *(f"  {line}" for line in lines(attempt.remedies))]
