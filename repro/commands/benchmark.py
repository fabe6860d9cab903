"""The command `benchmark`: measures the seconds of training."""

import argparse
from pathlib import Path

from repro.commands import workspace
from repro.commands.parser import Parser

LISTS = ("frameworks", "numerics", "devices", "batch_sizes", "threads", "train_samples")
VALUES = ("tutorial", "tuned", "target", "epochs", "rounds", "minutes", "against")
EPILOG = """keys of this command, among others:
  frameworks=jax numerics=fast,portable devices=cpu batch_sizes=16,64 threads=1,2
  minutes=5         time limit
  against=OLD.json  compare with an earlier benchmark.json
"""


def parser() -> Parser:
    summary = "measure how fast training is on this machine, and what each arithmetic costs"
    return workspace.trainer_parser("benchmark", summary, run, "frameworks=jax minutes=5", epilog=EPILOG)


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit code is 3 where fingerprints that should be equal are not, 1 where a run failed."""
    folder, overrides = workspace.read(options, lists=LISTS, values=VALUES)
    from repro.console import log_to_console, wide_console
    from repro.files import write_atomically
    from repro.report import against_table, speed_tables
    from repro.trainers.benchmark import against, results
    from repro.trainers.benchmark.measurement import Measurement
    from repro.trainers.loop import config, data

    checked = config.compose_config(folder, overrides)
    old = results.read(Path(checked.benchmark.against)) if checked.benchmark.against else None
    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    measurement = Measurement(checked, folder, overrides)
    content, exit_code = measurement()
    write_atomically(measurement.folder / "benchmark.md", speed_tables.markdown(content).encode())
    console = wide_console()
    speed_tables.show(content, console)
    if old:
        against_table.show(against.compare(old, content), console)
    return exit_code
