"""The answers of `verify` about a command of one's own: a table in the terminal."""

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.text import printable, ranks, short


def show(content: dict[str, Any], notes: list[str], folder: Path, command: str, console: Console) -> None:
    """Prints a line for each question, and what to do about what differs."""
    told = [f"{content['steps']} steps"] + [short(content["fingerprint"])] * bool(content["fingerprint"])
    table = Table(
        title=Text(printable(f"{command}  ({', '.join(told)})")), title_justify="left", title_style="bold",
        box=box.SIMPLE_HEAD,
    )  # fmt: skip
    for name in ("question", "answer", "first difference", "why"):
        table.add_column(name, overflow="fold")
    for answer in content["answers"]:
        table.add_row(
            Text(answer["question"]), Text(_promised(answer), _style(answer)), Text(printable(where(answer["first"]))),
            Text(printable(answer["why"] or "")),
        )  # fmt: skip
    console.print(table)
    for note in notes:
        console.print(Text(f"note: {printable(note)}"))
    console.print(Text(f"{_verdict(content['answers'])} The runs and their records are in {folder}"))


def where(first: dict[str, Any] | None) -> str:
    """The first difference in a few words."""
    if first is None:
        return ""
    at = f"step {first['step']}, " if first["step"] is not None else ""
    at += f"{ranks(first['ranks'])}, " if "ranks" in first else ""
    return f"{at}{first['channel']}" + (f": {first['name']}" if first["name"] else "")


def _promised(answer: dict[str, Any]) -> str:
    """The answer, and in words and with a mark whether it is what a reproducible training gives."""
    if answer["answer"] not in ("same", "differs") or answer["promised"] is None:
        return str(answer["answer"])
    return f"{answer['answer']} {'✓' if answer['answer'] == answer['promised'] else '✗'}"


def _style(answer: dict[str, Any]) -> str:
    if answer["answer"] not in ("same", "differs"):
        return "dim"
    return (
        "default" if answer["promised"] is None else "green" if answer["answer"] == answer["promised"] else "bold red"
    )


def _verdict(answers: list[dict[str, Any]]) -> str:
    asked = [answer for answer in answers if answer["promised"] and answer["answer"] in ("same", "differs")]
    broken = [answer["question"] for answer in asked if answer["answer"] != answer["promised"]]
    if not asked:
        return "No question was answered."
    if broken:
        return f"Not reproducible: {', '.join(broken)}."
    return f"{len(asked)} of {len(asked)} as they should be."
