"""The task `download`: fetches the data set and verifies it."""

from pathlib import Path

from repro.console import log_to_console
from repro.run import config, data
from repro.tasks.arguments import parse


def run(task: str, arguments: list[str]) -> int:
    """Fetches and verifies the data set; the exit code."""
    workspace, overrides = parse(task, arguments)
    checked = config.compose_config(workspace, overrides)
    log_to_console()
    data.download(checked.data, Path(checked.output.data_path))
    return 0
