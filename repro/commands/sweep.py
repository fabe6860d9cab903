"""The command `sweep`: trains once for each combination."""

import argparse

from repro.commands import workspace
from repro.commands.parser import Parser
from repro.errors import NOT_REPRODUCIBLE

EPILOG = """keys of this command:
  frameworks=pytorch,jax         frameworks to train in (default: all)
  hydra/launcher=joblib          several runs at a time, on this machine
  hydra/launcher=submitit_slurm  several runs at a time, under Slurm
  sif=repro.sif                  run in this image
"""


def parser() -> Parser:
    summary = "train once for each combination of values, and compare"
    return workspace.trainer_parser("sweep", summary, run, "params.seed=0,1,2", epilog=EPILOG)


def run(options: argparse.Namespace) -> int:
    """Runs all combinations; the exit code is 1 where a run failed, 3 where two disagree that must not."""
    folder, overrides = workspace.read(options)
    from repro.report import sweep_report
    from repro.trainers.sweep import sweep

    result = sweep_report.report(folder / "report", sweep(folder, overrides))
    return 1 if result.failed else NOT_REPRODUCIBLE if result.disagree else 0
