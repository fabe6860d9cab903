"""The task `verify`: asks "will I get this again?" on this machine, and prints the answers."""

from pathlib import Path

from rich.console import Console

from repro.ask import findings, questions
from repro.ask.verify import Verification
from repro.console import log_to_console
from repro.run import config, data
from repro.show import tables
from repro.tasks.arguments import parse

LISTS = ("questions", "frameworks", "numerics")


def run(task: str, arguments: list[str]) -> int:
    """Asks and prints the answers; the exit code is 3 where a promise was broken, 1 where a run failed."""
    workspace, overrides = parse(task, arguments, lists=LISTS)
    checked = config.compose_config(workspace, overrides)
    config.check_members("verify.questions", checked.verify.questions, questions.CHOICES)
    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    content, exit_code = Verification(checked, workspace, overrides)()
    tables.show(findings.build([content]), Console())
    return exit_code
