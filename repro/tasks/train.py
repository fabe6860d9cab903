"""The commands `pytorch`, `tensorflow` and `jax`: a training."""

import argparse

from repro.tasks import workspace
from repro.tasks.parser import Parser

NAMES = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}


def parsers() -> list[Parser]:
    return [
        workspace.trainer_parser(
            framework,
            f"train in {name}, and print the fingerprint of the trained weights",
            run,
            "params.n_epochs=1 params.seed=7",
            description=f"Trains in {name}, and prints the fingerprint of the trained weights, a SHA-256.",
        )
        for framework, name in NAMES.items()
    ]


def run(options: argparse.Namespace) -> int:
    """Trains; the exit code."""
    folder, overrides = workspace.read(options)
    from repro.run import job

    return job.run(options.task, folder, overrides)
