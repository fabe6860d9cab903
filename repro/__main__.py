"""The command line behind run.sh: python -m repro TASK --workspace=DIR [KEY=VALUE ...] [--debug], and compare A B."""

import gc
import importlib
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from repro.errors import ReproError, UsageError
from repro.run import config, data, environment, gpu, launch, ranks
from repro.run.launch import RESUME, leave_error
from repro.run.times import Times

TASKS = ("download", *config.FRAMEWORKS, "sweep", "verify", "compare", "benchmark", "report")
NOT_REPRODUCIBLE = 3
WIDE = 132  # columns for the tables of `benchmark`, where the output is no terminal
# Keys of a task's own section that may be given without its name: lists, and single values.
LISTS = {
    "verify": ("questions", "frameworks", "numerics"),
    "benchmark": ("frameworks", "numerics", "devices", "batch_sizes", "threads", "train_samples"),
}
VALUES = {"benchmark": ("tutorial", "tuned", "target", "epochs", "rounds", "minutes", "against")}


def main(arguments: list[str]) -> int:
    """Runs one task; the exit code: 0 done, 1 failed, 2 wrong usage or configuration, 3 not reproducible."""
    debug = "--debug" in arguments
    try:
        return run([argument for argument in arguments if argument != "--debug"])
    except ReproError as error:
        if debug:
            raise
        leave_error(f"error: {error}")
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        place = error.filename or os.environ.get("WORKSPACE_PATH")  # a failed write does not say where
        leave_error(f"error: {place}: {error.strerror or error}; make it writable, or free space (--debug: where)")
        return 1
    except KeyboardInterrupt:
        leave_error(f"error: interrupted; {RESUME}")
        return 1
    except Exception as error:
        if debug:
            raise
        first = (str(error).strip().splitlines() or [""])[0]
        leave_error(f"error: {type(error).__name__}: {first} (--debug shows where)")
        return 1


def run(arguments: list[str]) -> int:
    """Runs the task that the arguments name; its exit code where it ends well, or finds two runs to differ."""
    if arguments[:1] == ["compare"]:
        return compare(arguments[1:])
    task, workspace, overrides = parse(arguments)
    os.environ["WORKSPACE_PATH"] = str(workspace)
    if task == "report":  # it reads results alone, so no configuration can keep it from that
        report(workspace, overrides)
        return 0
    if task == "sweep":
        return sweep(workspace, overrides)
    checked, composed = config.compose_job(task, workspace, overrides)
    if task == "verify":
        return verify(workspace, overrides, checked)
    if task == "benchmark":
        return benchmark(workspace, overrides, checked)
    if task == "download":
        download(checked)
    else:
        return train(task, workspace, overrides, checked, composed)
    return 0


def parse(arguments: list[str]) -> tuple[str, Path, list[str]]:
    """The task, the workspace, and Hydra's overrides or, for `report`, files. UsageError for anything else."""
    if not arguments or arguments[0] not in TASKS:
        given = arguments[0] if arguments else "nothing"
        raise UsageError(f"task {given!r}: must be one of {', '.join(TASKS)}")
    workspaces = [argument for argument in arguments[1:] if argument.startswith("--workspace=")]
    overrides = [argument for argument in arguments[1:] if not argument.startswith("--workspace=")]
    for override in overrides:
        if override.startswith("-") or ("=" not in override and arguments[0] != "report"):
            raise UsageError(f"argument {override!r}: must be KEY=VALUE, --workspace=DIR or --debug")
    if len(workspaces) != 1:
        raise UsageError(f"--workspace=DIR must be given once, not {len(workspaces)} times")
    workspace = Path(workspaces[0].removeprefix("--workspace=")).absolute()
    if not workspace.is_dir():
        raise UsageError(f"--workspace={workspace}: there is no such folder; make it first")
    if arguments[0] in LISTS:
        overrides = [_in_full(arguments[0], override) for override in overrides]
    return arguments[0], workspace, overrides


def _in_full(task: str, override: str) -> str:
    """`questions=threads,workers` of verify -> `verify.questions=[threads,workers]`."""
    key, value = override.split("=", 1)
    if key in LISTS[task]:
        return f"{task}.{key}=[{value.strip('[]')}]"
    return f"{task}.{override}" if key in VALUES.get(task, ()) else override


def verify(workspace: Path, overrides: list[str], checked: config.Config) -> int:
    """Asks the questions, prints the answers, and returns the exit code."""
    from rich.console import Console

    from repro.ask import findings
    from repro.ask.verify import Verification
    from repro.console import log_to_console
    from repro.show import tables

    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    content, exit_code = Verification(checked, workspace, overrides)()
    tables.show(findings.build([content]), Console())
    return exit_code


def benchmark(workspace: Path, overrides: list[str], checked: config.Config) -> int:
    """Measures how fast training is here, prints the tables, and returns the exit code."""
    from rich.console import Console

    from repro.console import log_to_console
    from repro.measure import against, speed
    from repro.measure.benchmark import Benchmark
    from repro.show import speed_tables

    old = speed.read(Path(checked.benchmark.against)) if checked.benchmark.against else None
    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    content, exit_code = Benchmark(checked, workspace, overrides)()
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    speed_tables.show(content, console)
    if old:
        against.show(against.compare(old, content), console)
    return exit_code


def compare(arguments: list[str]) -> int:
    """Says where and why two runs part; the exit code is 0 if they are the same, 3 if not."""
    from repro.ask import compare

    folders = [Path(argument) for argument in arguments if argument != "--narrow"]
    if len(folders) != 2:
        raise UsageError(f"compare: two runs' folders must be given, not {len(folders)}: ./run.sh compare A B")
    a, b = (compare.read(folder) for folder in folders)
    compare.check_comparable(a, b)
    difference = compare.first_difference(a, b)
    if difference and "--narrow" in arguments:
        from repro.ask.narrow import narrow

        difference.operation = str(narrow(a, b, difference))
    print(compare.told(a, b, difference), flush=True)
    return NOT_REPRODUCIBLE if difference and not difference.only_losses else 0


def sweep(workspace: Path, overrides: list[str]) -> int:
    """Runs all combinations and prints what came of them; the exit code is 1 if a run failed, 3 if two disagree."""
    from repro.run.sweep import sweep

    found = report_sweep(workspace, sweep(workspace, overrides))
    return 1 if found["failed"] else NOT_REPRODUCIBLE if found["disagree"] else 0


def report_sweep(workspace: Path, folder: Path) -> dict[str, Any]:
    """Makes the page of a sweep, prints its tables, and returns what it found."""
    from rich.console import Console

    from repro.show import sweep_report

    found = sweep_report.write(workspace, folder)
    sweep_report.show(found, Console(width=None if sys.stdout.isatty() else WIDE))
    print(f"report in {workspace / 'report' / 'sweep.html'}", file=sys.stderr)
    return found


def report(workspace: Path, files: list[str]) -> None:
    """Makes the page of what `verify` and `benchmark` found, here and elsewhere, or that of a sweep."""
    if len(files) == 1 and Path(files[0]).is_dir():
        report_sweep(workspace, Path(files[0]))
        return

    from rich.console import Console

    from repro.show import speed_tables, tables
    from repro.show.report import write

    made = write(workspace, files)
    if made["sections"]:
        tables.show(made, Console())
    for content in made["benchmarks"]:
        speed_tables.show(content, Console(width=None if sys.stdout.isatty() else WIDE))
    print(f"report in {workspace / 'report' / 'report.html'}", file=sys.stderr)


def download(checked: config.Config) -> None:
    """Fetches and verifies the data set."""
    from repro.console import log_to_console

    log_to_console()
    data.download(checked.data, Path(checked.output.data_path))


def train(task: str, workspace: Path, overrides: list[str], checked: config.Config, composed: DictConfig) -> int:
    """Trains, alone, as one rank of several, or by starting these; prints the fingerprint last."""
    place, own = ranks.place(), [task, f"--workspace={workspace}", *overrides]
    if place is not None and not launch.started():
        return launch.watch(place, own)
    dataset = data.load(checked.data, Path(checked.output.data_path))
    if place is None and checked.params.ranks > 1:
        return launch.start(task, checked.params.ranks, own)
    if place is not None:
        launch.join_launcher()
        overrides = [*overrides, f"params.ranks={ranks.size(place, checked.params.ranks)}"]
        checked, composed = config.compose_job(task, workspace, overrides)
        ranks.check_port(place)
        if checked.params.device != "cpu":
            os.environ.update(ranks.own_gpu(place, gpu.count()))
    environment.apply(task, checked)
    if place is not None and place.rank > 0:  # only one rank writes
        logging.disable()
        _train(task, checked, place, dataset, Path(os.devnull))
    else:
        result = in_hydra(composed, partial(_train, task, checked, place, dataset))
        print(f"fingerprint {result}", flush=True)
    return 0


def _train(task: str, checked: config.Config, place: ranks.Place | None, dataset: data.Dataset, folder: Path) -> str:
    gc.disable()  # what an import makes stays; to look for garbage among it takes up to a fifth of its time
    from repro.console import libraries_write_to
    from repro.run.training import Run

    times = Times()
    with libraries_write_to(folder / f"{task}.log" if folder.is_dir() else folder):
        times.reached("begun")
        framework = importlib.import_module(f"mnist_{task}")
        gc.freeze()  # nor is it looked through later
        gc.enable()
        times.reached("imported")
        with gpu.errors_explained(RESUME):
            trainer = framework.Trainer(checked.params, dataset, place)
        times.reached("built")
    with gpu.errors_explained(RESUME):
        result = Run(task, checked, trainer, dataset, folder, times).train()
    trainer.ranks.leave()
    return result


def in_hydra(composed: DictConfig, train: Callable[[Path], str]) -> str:
    """Calls train(folder) inside a Hydra job of what was composed; it keeps its own record in that folder."""
    from hydra._internal.callbacks import Callbacks
    from hydra.core.hydra_config import HydraConfig
    from hydra.core.utils import run_job
    from hydra.types import HydraContext

    from repro.console import log_to_console

    outcome: list[str | BaseException] = []

    def job(_) -> None:
        log_to_console()
        folder = Path(HydraConfig.get().runtime.output_dir)
        logging.getLogger(__name__).info("results in %s", folder)
        try:
            outcome.append(train(folder))
        except BaseException as error:  # carried past Hydra, which would print it its own way
            outcome.append(error)

    # As hydra.main() ends, which would compose the configuration twice more: what was checked is what runs.
    callbacks = Callbacks(composed)
    context = HydraContext(config_loader=None, callbacks=callbacks)  # type: ignore[arg-type]  # a job composes nothing
    callbacks.on_run_start(config=composed, config_name=config.NAME)
    done = run_job(job, composed, "hydra.run.dir", None, context)
    callbacks.on_run_end(config=composed, config_name=config.NAME, job_return=done)
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    return result


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if code and ranks.Ranks.joined:  # engines would wait for the others until they give up
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)
