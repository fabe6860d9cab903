"""A training as a Hydra job, alone, as one rank of several, or by starting these."""

import gc
import importlib
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from omegaconf import DictConfig

from repro.machine import gpu
from repro.trainers.loop import config, data, environment, launch, ranks
from repro.trainers.loop.config import Config
from repro.trainers.loop.data import Dataset
from repro.trainers.loop.launch import RESUME
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.loop.times import ProcessTimes


def run(task: str, workspace: Path, overrides: list[str]) -> int:
    """Trains, and prints the fingerprint last; the exit code."""
    checked, composed = config.compose_job(task, workspace, overrides)
    rank_info, own = ranks.rank_from_environment(), [task, f"--workspace={workspace}", *overrides]
    if rank_info is not None and not launch.started():
        return launch.watch(rank_info, own)
    dataset = data.load(checked.data, Path(checked.output.data_path))
    if rank_info is None and checked.params.ranks > 1:
        return launch.start(checked.params.ranks, own, _starter(task))
    if rank_info is not None:
        launch.join_launcher()
        overrides = [*overrides, f"params.ranks={ranks.size(rank_info, checked.params.ranks)}"]
        checked, composed = config.compose_job(task, workspace, overrides)
        ranks.check_port(rank_info)
        if checked.params.device != "cpu":
            os.environ.update(ranks.own_gpu(rank_info, gpu.count()))
    environment.apply(task, checked)
    if rank_info is not None and rank_info.rank > 0:  # only one rank writes
        logging.disable()
        _train(task, checked, rank_info, dataset, Path(os.devnull))
    else:
        result = in_hydra(composed, partial(_train, task, checked, rank_info, dataset))
        print(f"fingerprint {result}", flush=True)
    return 0


def _starter(task: str) -> launch.Starter:
    """Starts torchrun for PyTorch, plain processes for the other frameworks."""
    if task != "pytorch":
        return launch.processes
    from repro.trainers.native.pytorch.ranks import torchrun

    return torchrun


def _train(task: str, checked: Config, rank_info: RankInfo | None, dataset: Dataset, folder: Path) -> str:
    gc.disable()  # objects of imports stay: searching them for garbage only takes time
    from repro.console import libraries_write_to
    from repro.trainers.loop.training import TrainingRun

    times = ProcessTimes()
    with libraries_write_to(folder / f"{task}.log" if folder.is_dir() else folder):
        times.reached("begun")
        framework = importlib.import_module(f"mnist_{task}")
        gc.freeze()  # nor is it searched later
        gc.enable()
        times.reached("imported")
        with gpu.errors_explained(RESUME):
            trainer = framework.Trainer(checked.params, dataset, rank_info)
        times.reached("built")
    with gpu.errors_explained(RESUME):
        result = TrainingRun(task, checked, trainer, dataset, folder, times).train()
    trainer.ranks.close()
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
