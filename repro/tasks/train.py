"""The commands `pytorch`, `tensorflow` and `jax`: a training."""

import argparse
from typing import TYPE_CHECKING

from repro.frameworks import FRAMEWORKS
from repro.tasks import workspace
from repro.tasks.parser import Parser

if TYPE_CHECKING:
    from repro.run.launch import Starter


def parsers() -> list[Parser]:
    return [
        workspace.trainer_parser(
            framework,
            f"train in {name}, and print the fingerprint of the trained weights",
            run,
            "params.n_epochs=1 params.seed=7",
            description=f"Trains in {name}, and prints the fingerprint of the trained weights, a SHA-256.",
        )
        for framework, (name, *_) in FRAMEWORKS.items()
    ]


def run(options: argparse.Namespace) -> int:
    """Trains; the exit code."""
    folder, overrides = workspace.read(options)
    from repro.run import job

    return job.run(options.task, folder, overrides, _starter(options.task))


def _starter(task: str) -> "Starter":
    """torchrun for PyTorch, plain processes for the other frameworks."""
    if task == "pytorch":
        from repro.native.pytorch.ranks import torchrun

        return torchrun
    from repro.run.launch import processes

    return processes
