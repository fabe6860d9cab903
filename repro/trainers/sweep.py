"""Sweeps: a run for each combination of frameworks and values.

Each run is a fresh process, by Hydra's launchers.
"""

import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from omegaconf import DictConfig

from repro.errors import ReproError, UsageError
from repro.frameworks import FRAMEWORKS
from repro.machine.facts import ROOT
from repro.trainers.loop import config

FRAMEWORK, SIF = "framework", "sif"  # keys of a job that are not its run's
LAUNCHERS = {"joblib": "joblib", "submitit_slurm": "submitit", "submitit_local": "submitit"}
CONTAINER = ("singularity", "run", "--containall", "--pwd", "/", "--nv", "--net", "--network", "none")

log = logging.getLogger(__name__)


def sweep(workspace: Path, arguments: list[str]) -> Path:
    """Runs all combinations, and returns the sweep's folder. UsageError before the first where one of them is wrong."""
    words = dict(argument.split("=", 1) for argument in arguments if argument.startswith(("frameworks=", "sif=")))
    overrides = [argument for argument in arguments if not argument.startswith(("frameworks=", "sif="))]
    frameworks = words.get("frameworks", ",".join(FRAMEWORKS)).strip("[]").split(",")
    for name in frameworks:
        if name not in FRAMEWORKS:
            raise UsageError(f"frameworks={name}: must be one or several of {', '.join(FRAMEWORKS)}")
    sif = Path(words.get("sif", "")).absolute() if "sif" in words else None
    if sif and not sif.exists():
        raise UsageError(f"sif={sif}: there is no such image; make sif")
    _check_launcher(overrides)
    for combination in combinations(overrides):
        config.compose_config(workspace, combination)

    import hydra

    from repro.console import log_to_console, stdout_to_stderr

    own = [f"+{FRAMEWORK}={','.join(frameworks)}", *([f"+{SIF}='{sif}'"] if sif else [])]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [sys.argv[0], "--multirun", "hydra.job.name=sweep", *own, *overrides]
    log_to_console()
    before = set(_folders(workspace))
    with stdout_to_stderr():
        hydra.main(config_path=str(config.folder(workspace)), config_name=config.NAME, version_base="1.3")(job)()
    done = sorted(set(_folders(workspace)) - before)
    if not done:
        raise ReproError("sweep: Hydra left no folder; see what it said")
    return done[-1]


def _folders(workspace: Path) -> Iterator[Path]:
    return (workspace / "outputs" / "sweep").glob("*")


def _check_launcher(overrides: list[str]) -> None:
    for override in overrides:
        key, _, launcher = override.partition("=")
        plugin = LAUNCHERS.get(launcher)
        if key != "hydra/launcher" or plugin is None:
            continue
        if not importlib.util.find_spec("hydra_plugins") or not importlib.util.find_spec(
            f"hydra_plugins.hydra_{plugin}_launcher"
        ):
            raise UsageError(
                f"{override}: the plugin hydra-{plugin}-launcher is not installed; requirements/install.sh sweep"
            )


def combinations(overrides: list[str]) -> Iterator[list[str]]:
    """The overrides of each run: those that name several values once for each."""
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise UsageError(f"configuration: {error.override}: cannot be read; see hydra.cc on sweeps") from error
    choices = [
        [f"{one.get_key_element()}={value}" for value in one.sweep_string_iterator()]
        if one.is_sweep_override()
        else [text]
        for one, text in zip(parsed, overrides, strict=True)
    ]
    yield from map(list, product(*choices))


def job(composed: DictConfig) -> None:
    """Runs a fresh process of run.sh, on the bare machine or in a container. What it says goes to run.log.

    A run that fails ends no other: the sweep's report shows it.
    """
    from hydra.core.hydra_config import HydraConfig

    workspace = Path(os.environ["WORKSPACE_PATH"])
    folder = Path(HydraConfig.get().runtime.output_dir)
    keys = [key for key in HydraConfig.get().overrides.task if not key.startswith((f"+{FRAMEWORK}=", f"+{SIF}="))]
    command = command_of(workspace, folder.relative_to(workspace), composed[FRAMEWORK], composed.get(SIF), keys)
    with open(folder / "run.log", "ab") as file:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False).returncode
    log.info("%s %s: %s", composed[FRAMEWORK], " ".join(keys), "done" if code == 0 else f"failed, see {folder}/run.log")


def command_of(workspace: Path, folder: Path, framework: str, sif: str | None, keys: list[str]) -> list[str]:
    """The run whose results go into a folder of the workspace, and which resumes there when its job is requeued."""
    place = f"${{oc.env:WORKSPACE_PATH}}/{folder}"
    keys = ["params.resume=auto", *keys, f"hydra.run.dir={place}/run", f"output.model_path={place}/model"]
    if sif is None:
        return [str(ROOT / "run.sh"), framework, f"--workspace={workspace}", *keys]
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = ["--env", f"CUDA_VISIBLE_DEVICES={gpus}"] if gpus else []
    return [*CONTAINER, *shown, "--bind", f"{workspace}:/workspace", sif, framework, "--workspace=/workspace", *keys]
