"""The report as Markdown and in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.report.contents import Block, Report, TableCell
from repro.report.findings import TOGETHER, framework_name, promised, training_name, verdict
from repro.report.markdown import escaped, table
from repro.text import short
from repro.verify.questions import UNANSWERED, shown

MOST = 500  # questions of a table in the terminal
STYLES = {True: "green", False: "bold red", None: "default"}  # by whether a promise was kept
LEVELS = ["Level", "Name", "Reached", "Answers"]
SPEED = ["Machine", "Numerics", "Framework", "Steps", "ms a step", "whole run, s", "Accuracy", "Fingerprint"]


def show(report: Report, console: Console) -> None:
    """Prints a table for each arithmetic, a line a cell; in colours where the console is a terminal."""
    for heading, block in _headed_blocks(report):
        table = Table(title=Text(heading), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name in ("question", "framework", "answer", "evidence"):
            table.add_column(name, overflow="fold")
        for row in block.rows[:MOST]:
            title = Text(row.title)
            for cell in row.cells.values():
                table.add_row(title, Text(framework_name(cell.framework)), *_styled(cell))
                title = Text("")
            table.add_section()
        console.print(table)
        if len(block.rows) > MOST:
            console.print(Text(f"and {len(block.rows) - MOST} more questions, which the page shows"))
    for section in report.sections:
        for warning in section.warnings:
            console.print(Text(f"warning: {warning.text}"))
    for training in report.levels:
        console.print(Text(f"{training_name(training)}: {training.says}"))
    console.print(Text(verdict(report)))


def _styled(cell: TableCell) -> tuple[Text, Text]:
    """The answer and the evidence. Text takes what a file says as it is; a string would be read as rich's markup."""
    style = STYLES[cell.kept] if cell.answer not in UNANSWERED else "dim"
    return Text(", ".join(filter(None, (shown(cell.answer), promised(cell)))), style), Text(cell.says)


def _headed_blocks(report: Report) -> list[tuple[str, Block]]:
    blocks = [(f"Across machines, {block.numerics}", block) for block in report.across]
    for section in report.sections:
        where = f"Machine {section.machine}, {section.created}, "
        blocks += [(where + block.numerics, block) for block in section.blocks]
    return blocks


def _columns(block: Block) -> list[str]:
    """The frameworks, then one for what was asked of all of them together, where anything was."""
    together = any(TOGETHER in row.cells for row in block.rows)
    return [*block.frameworks, TOGETHER] if together else block.frameworks


def markdown(report: Report) -> str:
    """The report for places that show Markdown: the tables, the speed and the machines, without pictures."""
    lines = ["# Will you get it again?", "", escaped(verdict(report))]
    for training in report.levels:
        rows = [[str(row.number), row.name, "yes" if row.reached else "no", row.says] for row in training.rows]
        lines += ["", f"## {escaped(training.says)}", "", escaped(training_name(training)), "", *table(LEVELS, rows)]
    for heading, block in _headed_blocks(report):
        columns = _columns(block)
        rows = [[row.title, *(_text(row.cells.get(name)) for name in columns)] for row in block.rows]
        lines += ["", f"## {escaped(heading)}", "", *table(["Question", *map(framework_name, columns)], rows)]
    lines += [
        text
        for section in report.sections
        for one in section.warnings
        for text in ("", f"Warning: {escaped(one.text)}.")
    ]
    facts = [[machine.name, name, fact] for machine in report.machines for name, fact in machine.facts.items()]
    lines += ["", "## Speed of the run as configured", "", *table(SPEED, _speed(report))]
    lines += ["", "## Machines", "", *table(["Machine", "Fact", "Value"], facts)]
    return "\n".join([*lines, ""])


def _speed(report: Report) -> list[list[str]]:
    return [
        [
            section.machine,
            row.numerics,
            framework_name(row.framework),
            str(row.steps),
            _number(row.seconds_per_step, 1000, 2),
            _number(row.seconds, 1, 1),
            _number(row.test_accuracy, 100, 2, " %"),
            short(row.fingerprint or ""),
        ]
        for section in report.sections
        for row in section.speed
    ]


def _text(cell: TableCell | None) -> str:
    return "; ".join(filter(None, (shown(cell.answer), promised(cell), cell.says))) if cell else ""


def _number(value: float | None, factor: float, digits: int, unit: str = "") -> str:
    return "" if value is None else f"{value * factor:.{digits}f}{unit}"
