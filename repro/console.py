"""Log lines and progress on stderr.

Stdout holds the result alone.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

from repro.text import printable, printable_lines


class Screen(Console):
    """A console that shows no character which a terminal would obey, whatever a file holds."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is shown; those with a control code are the console's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


console = Screen(stderr=True, highlight=False, soft_wrap=True)


def log_to_console() -> None:
    """Shows log lines on stderr instead of stdout, where Hydra would write them; its log file stays."""
    root = logging.getLogger()
    for other in list(root.handlers):
        if type(other) is logging.StreamHandler:
            root.removeHandler(other)
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if console.is_terminal:
        handler = RichHandler(console=console, show_time=False, show_level=False, show_path=False, markup=False)
    handler.addFilter(_make_printable)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("jax").setLevel(logging.WARNING)  # it would report each kind of device that does not exist


def _make_printable(record: logging.LogRecord) -> bool:
    """Leaves no character in a line that a terminal would obey."""
    record.msg, record.args = printable(record.getMessage()), ()
    return True


@contextlib.contextmanager
def libraries_write_to(log: Path) -> Iterator[None]:
    """Redirects what a framework writes to stdout or stderr while it loads to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    terminals = {number: os.dup(number) for number in {1, 2, sys.stderr.fileno()}}
    try:
        with open(log, "ab") as file:
            for number in terminals:
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, terminal in terminals.items():
            os.dup2(terminal, number)
            os.close(terminal)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirects stdout of this process, and of those that it starts, to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def confirmed(question: str) -> bool:
    """Asks a question at the terminal; False if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    console.print(Text(f"{question} [y/N] "), end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def progress(shown: bool = True) -> Progress:
    """A progress bar over steps; nothing where stderr is no terminal, or it is not to be shown."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal))


WIDE = 132  # columns of wide tables if the output is not a terminal


def wide_console() -> Console:
    """A console of standard output, for tables that need room."""
    return Screen(width=None if sys.stdout.isatty() else WIDE)
