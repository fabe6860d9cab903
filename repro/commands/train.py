"""The commands `pytorch`, `tensorflow` and `jax`: a training."""

import argparse

from repro.commands import workspace
from repro.commands.parser import Parser
from repro.frameworks import FRAMEWORKS


def parsers() -> list[Parser]:
    return [
        workspace.trainer_parser(
            name,
            f"train in {framework.title}, and print the fingerprint of the trained weights",
            run,
            "params.n_epochs=1 params.seed=7",
            description=f"Train in {framework.title} and print the fingerprint of the trained weights, a SHA-256.",
        )
        for name, framework in FRAMEWORKS.items()
    ]


def run(options: argparse.Namespace) -> int:
    """Trains; the exit code."""
    folder, overrides = workspace.read(options)
    from repro.commands import job

    return job.run(options.task, folder, overrides)
