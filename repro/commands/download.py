"""The command `download`: fetches the data set."""

import argparse
from pathlib import Path

from repro.commands import workspace
from repro.commands.parser import Parser


def parser() -> Parser:
    summary = "fetch and verify the data set; the only command that needs a network"
    return workspace.trainer_parser("download", summary, run, "data.dataset=fashion_mnist")


def run(options: argparse.Namespace) -> int:
    """Fetches and verifies the data set; the exit code."""
    folder, overrides = workspace.read(options)
    from repro.console import log_to_console
    from repro.trainers.loop import config, data

    checked = config.compose_config(folder, overrides)
    log_to_console()
    data.download(checked.data, Path(checked.output.data_path))
    return 0
