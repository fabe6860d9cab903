"""The report as text: Markdown, and a table in the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.report.findings import TOGETHER, Json, promised, verdict
from repro.report.markdown import escaped, table
from repro.report.page import framework
from repro.text import short
from repro.verify.questions import UNANSWERED

STYLES = {True: "green", False: "bold red", None: "default"}  # of whether a promise was kept


def show(report: Json, console: Console) -> None:
    """Prints a table for each arithmetic, a line a cell; in colours where the console is a terminal."""
    for heading, block in _headed_blocks(report):
        table = Table(title=Text(heading), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name in ("question", "framework", "answer", "evidence"):
            table.add_column(name, overflow="fold")
        for row in block["rows"]:
            title = Text(row["title"])
            for cell in row["cells"].values():
                table.add_row(title, Text(framework(cell["framework"])), *_styled(cell))
                title = Text("")
            table.add_section()
        console.print(table)
    console.print(Text(verdict(report)))


def _styled(cell: Json) -> tuple[Text, Text]:
    """Answer and evidence. Text takes what a file says as it is; a string would be read as rich's markup."""
    style = STYLES[cell["kept"]] if cell["answer"] not in UNANSWERED else "dim"
    return Text(", ".join(filter(None, (cell["answer"], promised(cell)))), style), Text(cell["says"])


def _headed_blocks(report: Json) -> list[tuple[str, Json]]:
    blocks = [(f"Across machines, {block['numerics']}", block) for block in report["across"]]
    for section in report["sections"]:
        where = f"Machine {section['machine']}, {section['created']}, "
        blocks += [(where + block["numerics"], block) for block in section["blocks"]]
    return blocks


def _columns(block: Json) -> list[str]:
    """The frameworks, then one for what was asked of all of them together, where anything was."""
    together = [TOGETHER] if any(TOGETHER in row["cells"] for row in block["rows"]) else []
    return [*block["frameworks"], *together]


def markdown(report: Json) -> str:
    """The report for places that show Markdown: the tables, the speed and the machines, without pictures."""
    lines = ["# Will you get it again?", "", escaped(verdict(report))]
    for heading, block in _headed_blocks(report):
        columns = _columns(block)
        rows = [[row["title"], *(_text(row["cells"].get(name)) for name in columns)] for row in block["rows"]]
        lines += ["", f"## {escaped(heading)}", ""]
        lines += table(["Question", *map(framework, columns)], rows)
    lines += ["", "## Speed of the run as configured", ""]
    lines += table(
        ["Machine", "Numerics", "Framework", "Steps", "ms a step", "whole run, s", "Accuracy", "Fingerprint"],
        [
            [section["machine"], row["numerics"], framework(row["framework"]), str(row["steps"]),
             _number(row["seconds_per_step"], 1000, 2), _number(row["seconds"], 1, 1),
             _number(row["test_accuracy"], 100, 2, " %"), short(row["fingerprint"])]
            for section in report["sections"] for row in section["speed"]
        ],
    )  # fmt: skip
    lines += ["", "## Machines", ""]
    facts = [(machine["name"], name, fact) for machine in report["machines"] for name, fact in machine["facts"].items()]
    lines += table(["Machine", "Fact", "Value"], [list(fact) for fact in facts])
    return "\n".join([*lines, ""])


def _text(cell: Json | None) -> str:
    return "; ".join(filter(None, (cell["answer"], promised(cell), cell["says"]))) if cell else ""


def _number(value: float | None, factor: float, digits: int, unit: str = "") -> str:
    return "" if value is None else f"{value * factor:.{digits}f}{unit}"
