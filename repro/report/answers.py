"""A command's answers in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.compare.difference import Difference
from repro.text import counted, printable, ranks, short
from repro.verify.answers import Answer
from repro.verify.command import OwnCommand
from repro.verify.questions import CANNOT_TELL, UNANSWERED, shown

MARKS = {True: " ✓", False: " ✗", None: ""}  # by whether a promise was kept, so that no colour is needed
STYLES = {True: "green", False: "bold red", None: "default"}


def show(own: OwnCommand, answers: list[Answer], level: str, console: Console) -> None:
    """Prints a line for each question, what to do about what differs, and the level in words."""
    steps, fingerprint = own.ends
    end = counted(steps, "step") + (f", {short(fingerprint)}" if fingerprint else "")
    title = Text(printable(f"{own.command.typed}  ({end})"))
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name in ("question", "answer", "first difference", "why"):
        table.add_column(name, overflow="fold")
    for answer in answers:
        style = "dim" if answer.answer in UNANSWERED else STYLES[answer.kept]
        table.add_row(
            Text(answer.question.name),
            Text(shown(answer.answer) + MARKS[answer.kept], style),
            Text(printable(_where(answer.comparison.found if answer.comparison else None))),
            Text(printable(answer.says or answer.reason or "")),
        )
    console.print(table)
    for note in own.notes:
        console.print(Text(f"note: {printable(note)}"))
    for warning in own.warnings:
        console.print(Text(f"warning: {printable(warning.text)}"))
    if level:
        console.print(Text(printable(level)))
    console.print(Text(printable(f"{_verdict(answers)} The runs and their records are in {own.folder}")))


def _where(first: Difference | None) -> str:
    """The first difference in a few words."""
    if first is None:
        return ""
    step = [f"step {first.step}"] if first.step is not None else []
    step += [first.measured.metric.at] if first.measured and first.measured.metric.at else []
    among = [ranks(first.ranks)] if first.ranks else [str(first.among)] if first.among else []
    name = f": {first.names[0]}" if first.names else ""
    return ", ".join([*step, *among, first.channel]) + name


def _verdict(answers: list[Answer]) -> str:
    held = [answer for answer in answers if answer.kept is not None]
    broken = [answer.question.name for answer in held if not answer.kept and not answer.question.control]
    idle = [answer.question.name for answer in held if not answer.kept and answer.question.control]
    unknown = [answer.question.name for answer in answers if answer.answer == CANNOT_TELL]
    rest = f"; the control has no effect: {', '.join(idle)}" if idle else ""
    rest += f"; inconclusive: {', '.join(unknown)}." if unknown else "."
    if not held:
        return f"No question was answered{rest}"
    if broken:
        return f"Not reproducible: {', '.join(broken)}{rest}"
    return f"{len(held) - len(idle)} of {len(held)} as they should be{rest}"
