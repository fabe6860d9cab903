"""The command line behind run.sh: python -m repro TASK --workspace=DIR [KEY=VALUE ...] [--debug]."""

import importlib
import logging
import os
import sys
from pathlib import Path

from repro import config, data, environment
from repro.errors import ReproError, UsageError

TRAINING = ("pytorch", "tensorflow", "jax")
TASKS = ("download", *TRAINING)


def main(arguments: list[str]) -> int:
    """Runs one task and returns the exit code: 0 done, 1 failed, 2 wrong usage or configuration."""
    debug = "--debug" in arguments
    try:
        task, workspace, overrides = parse([argument for argument in arguments if argument != "--debug"])
        os.environ["WORKSPACE_PATH"] = str(workspace)
        checked = config.compose_config(workspace, overrides)
        if task == "download":
            download(checked)
        else:
            train(task, workspace, overrides, checked)
    except ReproError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        place = error.filename or os.environ.get("WORKSPACE_PATH")  # a failed write does not say where
        print(
            f"error: {place}: {error.strerror or error}; make it writable, or free space (--debug: where)",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; params.resume=auto goes on from the last checkpoint", file=sys.stderr)
        return 1
    except Exception as error:
        if debug:
            raise
        first = (str(error).strip().splitlines() or [""])[0]
        print(f"error: {type(error).__name__}: {first} (--debug shows where)", file=sys.stderr)
        return 1
    return 0


def parse(arguments: list[str]) -> tuple[str, Path, list[str]]:
    """The task, the workspace and Hydra's overrides. UsageError for anything else."""
    if not arguments or arguments[0] not in TASKS:
        given = arguments[0] if arguments else "nothing"
        raise UsageError(f"task {given!r}: must be one of {', '.join(TASKS)}")
    workspaces = [argument for argument in arguments[1:] if argument.startswith("--workspace=")]
    overrides = [argument for argument in arguments[1:] if not argument.startswith("--workspace=")]
    for override in overrides:
        if override.startswith("-") or "=" not in override:
            raise UsageError(f"argument {override!r}: must be KEY=VALUE, --workspace=DIR or --debug")
    if len(workspaces) != 1:
        raise UsageError(f"--workspace=DIR must be given once, not {len(workspaces)} times")
    workspace = Path(workspaces[0].removeprefix("--workspace=")).absolute()
    if not workspace.is_dir():
        raise UsageError(f"--workspace={workspace}: there is no such folder; make it first")
    return arguments[0], workspace, overrides


def download(checked: config.Config) -> None:
    """Fetches and verifies the data set."""
    from repro.console import log_to_console

    log_to_console()
    data.download(checked.data, Path(checked.output.data_path))


def train(task: str, workspace: Path, overrides: list[str], checked: config.Config) -> None:
    """Trains inside a Hydra job, which keeps its own record in the run's folder; prints the fingerprint last."""
    dataset = data.load(checked.data, Path(checked.output.data_path))
    environment.apply(task, checked)

    import hydra
    from hydra.core.hydra_config import HydraConfig

    from repro.console import libraries_write_to, log_to_console
    from repro.training import Run

    outcome: list[str | BaseException] = []

    @hydra.main(config_path=str(config.folder(workspace)), config_name=config.NAME, version_base="1.3")
    def job(_) -> None:
        log_to_console()
        folder = Path(HydraConfig.get().runtime.output_dir)
        logging.getLogger(__name__).info("results in %s", folder)
        try:
            with libraries_write_to(folder / f"{task}.log"):
                trainer = importlib.import_module(f"mnist_{task}").Trainer(checked.params, dataset)
            outcome.append(Run(task, checked, trainer, dataset, folder).train())
        except BaseException as error:  # carried past Hydra, which would print it its own way
            outcome.append(error)

    os.environ["HYDRA_FULL_ERROR"] = "1"  # what fails before the job, in Hydra itself, comes as it is
    sys.argv = [sys.argv[0], f"hydra.job.name={task}", *overrides]
    job()
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    print(f"fingerprint {result}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
