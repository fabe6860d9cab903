"""The task `benchmark`: measures how fast training is on this machine, and prints the tables."""

from pathlib import Path

from repro.benchmark import against, speed
from repro.benchmark.measurement import Benchmark
from repro.console import log_to_console, wide_console
from repro.files import write_atomically
from repro.report import against_table, speed_tables
from repro.run import config, data
from repro.tasks.arguments import parse

LISTS = ("frameworks", "numerics", "devices", "batch_sizes", "threads", "train_samples")
VALUES = ("tutorial", "tuned", "target", "epochs", "rounds", "minutes", "against")


def run(task: str, arguments: list[str]) -> int:
    """Measures and prints; the exit code is 3 where fingerprints that should be equal are not, 1 where a run failed."""
    workspace, overrides = parse(task, arguments, lists=LISTS, values=VALUES)
    checked = config.compose_config(workspace, overrides)
    old = speed.read(Path(checked.benchmark.against)) if checked.benchmark.against else None
    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    benchmark = Benchmark(checked, workspace, overrides)
    content, exit_code = benchmark()
    write_atomically(benchmark.folder / "benchmark.md", speed_tables.markdown(content).encode())
    console = wide_console()
    speed_tables.show(content, console)
    if old:
        against_table.show(against.compare(old, content), console)
    return exit_code
