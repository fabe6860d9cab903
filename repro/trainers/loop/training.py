"""Training loop: steps, evaluation, checkpoints, resume, log."""

import json
import logging
import math
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.progress import Progress

from repro.console import progress
from repro.errors import ReproError
from repro.files import locked, write_atomically
from repro.fingerprint import fingerprint
from repro.observe.watch import watch
from repro.portable.definitions.ranks import SingleProcess
from repro.trainers.loop import checkpoint, config, experiment, float32, golden, layout, randomness
from repro.trainers.loop.checkpoint import Checkpoint, CheckpointRecord
from repro.trainers.loop.config import Config, Params
from repro.trainers.loop.data import Dataset
from repro.trainers.loop.launch import LOST, RESUME
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.loop.times import ProcessTimes
from repro.trainers.loop.trace import TraceWriter

log = logging.getLogger(__name__)

# In the line, of many, in which a framework reports that another rank does not answer.
GONE = re.compile("abort|reset|closed|refused|unavailable|timed? ?out", re.IGNORECASE)


class Trainer(Protocol):
    """The interface between the loop and a framework; each mnist_<framework>.py has one. Arrays are NumPy's."""

    ranks: SingleProcess
    """The ranks that share each batch: steps() is given all of it, and each rank takes its part."""

    def __init__(self, params: Params, data: Dataset, rank_info: RankInfo | None = None) -> None: ...

    def steps(self, batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        """Trains on each batch in turn: indices int32 [S, B], bits uint8 [S, B, units] -> losses float32 [S]."""
        ...

    def inspect(self, batch: np.ndarray, dropout_bits: np.ndarray) -> dict[str, np.ndarray]:
        """Computes results and gradients of a step on this batch, int32 [B] and uint8 [B, units]; updates nothing."""
        ...

    def evaluate(self) -> tuple[float, int, int]:
        """The mean loss, correct and total over the whole test set."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Weights and optimizer slots, float32, in the layout of repro.trainers.loop.layout."""
        ...

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes over weights and optimizer slots that state() returned, in any framework."""
        ...

    def facts(self) -> dict[str, object]:
        """Facts of this framework and its device, for experiment.json."""
        ...


@dataclass
class TrainingRun:
    """A training run, from its first step (or the checkpoint it resumes from) to its fingerprint."""

    task: str
    config: Config
    trainer: Trainer
    dataset: Dataset
    folder: Path
    """The folder of experiment.json, metrics.jsonl and times.json; only rank 0 writes."""
    times: ProcessTimes = field(default_factory=ProcessTimes)

    def __post_init__(self) -> None:
        params = self.config.params
        self.samples = len(self.dataset.train_labels)
        self.steps_per_epoch = math.ceil(self.samples / params.batch_size_train)
        whole = params.n_epochs * self.steps_per_epoch
        self.last_step = min(whole, params.max_steps or whole)
        self.models = Path(self.config.output.model_path) / self.task
        facts = self.trainer.facts()
        self.deciding = config.deciding(self.config, facts["device"])
        self.trace = TraceWriter(self.folder)
        self.ranks = self.trainer.ranks
        self.writes = self.ranks.rank == 0
        framework = f"{facts['framework']} {facts['version']} on the {str(facts['device']).upper()}"
        threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
        ranks = [f"{params.ranks} ranks"] if params.ranks > 1 else []
        data = [params.numerics, self.config.data.dataset, f"seed {params.seed}"]
        log.info("%s", ", ".join([framework, threads, *ranks, *data]))

    def train(self) -> str:
        """Trains to the end and returns the fingerprint of the weights."""
        params = self.config.params
        initial = randomness.initial_state(params.seed, params.model, params.optimizer)
        epochs = math.ceil(self.last_step / self.steps_per_epoch)
        record = experiment.record(
            self.task, self.config, self.trainer.facts(), self.dataset, epochs, fingerprint(layout.weights_of(initial))
        )
        if self.config.params.numerics == "portable":
            record["portable"] = self._rounded() | {"engine": self.trainer.facts().get("engine")}
        self.ranks.agree(experiment.common(record))
        if self.writes:
            experiment.write(self.folder, record)
        self._start(initial)
        with locked(self.models) if self.writes else nullcontext(), progress(self.writes) as bar:
            for epoch in range(self.step // self.steps_per_epoch + 1, epochs + 1):
                self._epoch(epoch, bar)
        final = fingerprint(layout.weights_of(self.trainer.state()))
        record["sha256"]["final_weights"] = final
        if self.writes:
            experiment.write(self.folder, record)
            self.times.write(self.folder)
        published = golden.verdict(self.config, self.last_step, self.steps_per_epoch, final)
        if published:
            log.info("%s", published)
        return final

    def _rounded(self) -> dict[str, float]:
        """The constants that portable numerics round, as they count."""
        params = self.config.params
        counted = float32.rounded(params.learning_rate, params.momentum)
        for key, value in counted.items():
            given = getattr(params, key.removeprefix("params."))
            if value != given:
                log.info("%s=%r counts as %r, the nearest float32", key, given, value)
        return counted

    def _start(self, initial: dict[str, np.ndarray]) -> None:
        """Starts from the checkpoint that params.resume asks for, or from the initial state."""
        found = self._resume_from()
        if found is None:
            state, record, self.losses = (
                initial,
                CheckpointRecord(self.task, self.folder.name, 0, self.steps_per_epoch, {}),
                [],
            )
        else:
            checkpoint.check_same(self.config.params.resume, found.record, self.deciding)
            state, record, self.losses = found.state, found.record, found.losses.tolist()
            log.info("resumes at step %d, from a checkpoint of %s", record.step, record.task)
            if record.step > self.last_step:
                raise ReproError(
                    f"checkpoint: it is at step {record.step}, past the end of this run at step {self.last_step}; "
                    f"raise params.n_epochs or params.max_steps, or start anew with params.resume=never"
                )
        self.run, self.step, self.metrics, self.seconds = record.run, record.step, record.metrics, record.seconds
        self.ranks.agree({"checkpoint": record.fingerprint})
        self.trainer.load_state(state)
        self._write_metrics()
        self._trace(start=True)

    def _resume_from(self) -> Checkpoint | None:
        resume = self.config.params.resume
        if resume == "never":
            return None
        return checkpoint.newest(self.models) if resume == "auto" else checkpoint.load(Path(resume))

    def _epoch(self, epoch: int, bar: Progress) -> None:
        """Trains to the end of the epoch or of the run, evaluates, and leaves a checkpoint and a line of metrics."""
        params = self.config.params
        first = (epoch - 1) * self.steps_per_epoch
        end = min(first + self.steps_per_epoch, self.last_step)
        order = randomness.order(params.seed, epoch, self.samples)
        name = f"epoch {epoch}/{params.n_epochs}"
        shown = bar.add_task(name, total=self.steps_per_epoch, completed=self.step - first)
        while self.step < end:
            started = time.perf_counter()
            stop = self._next_stop(end)
            if params.trace_operations:  # then this call is of one step
                self.trace.looked_into(self._inspect(epoch, order, self.step - first))
            losses = self._steps_of_all(epoch, order, self.step - first, stop - first)
            seconds = time.perf_counter() - started
            self.seconds += seconds
            self.times.called(stop - self.step, self._images(stop - first) - self._images(self.step - first), seconds)
            self.losses.extend(losses.tolist())
            if self.writes:
                self.trace.saw(losses)
            self.step = stop
            self._watch()
            bar.update(shown, completed=stop - first)
            if not math.isfinite(self.losses[-1]):  # before a checkpoint takes the place of the last good one
                raise ReproError(
                    f"training: the loss is {self.losses[-1]} at step {stop}; "
                    f"params.learning_rate={params.learning_rate} may be too large"
                )
            if stop < end:
                if params.checkpoint_steps and stop % params.checkpoint_steps == 0:
                    self._save()
                self._trace()
            if stop % params.log_interval == 0:
                log.info("%s  step %d  loss %.4f", name, stop, self.losses[-1])
        bar.remove_task(shown)
        self._finish_epoch(epoch, name, whole=end == first + self.steps_per_epoch)

    def _watch(self) -> None:
        """Shows `repro record` and `repro verify` the weights after a call, unless they see each of its steps."""
        recorder = getattr(sys.modules.get("_repro.observe.recorder"), "active", None)
        if recorder is not None and not recorder.steps:
            watch(self.step, self.trainer.state())

    def _next_stop(self, end: int) -> int:
        """The step at which the next call returns: for a checkpoint, a trace, a log line, or as it is long."""
        params = self.config.params
        intervals = [params.log_interval, params.checkpoint_steps, params.trace_steps]
        ends = [(self.step // every + 1) * every for every in intervals if every]
        longest = layout.steps_per_call(params.model, params.batch_size_train)
        return min(end, self.step + longest, *ends)

    def _steps_of_all(self, epoch: int, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Calls _steps(); shortens a framework's error to one line if another rank is gone."""
        try:
            return self._steps(epoch, order, start, stop)
        except Exception as error:
            if self.ranks.size == 1 or isinstance(error, ReproError):
                raise
            lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
            said = next((line for line in lines if GONE.search(line)), lines[0])[:120]
            raise ReproError(
                f"ranks: rank {self.ranks.rank} {LOST}, or failed, after step {self.step} "
                f"({type(error).__name__}: {said}); see what the other ranks say; {RESUME}"
            ) from error

    def _steps(self, epoch: int, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Steps [start, stop) of an epoch. Its last batch may be smaller, and is then a call of its own."""
        size = self.config.params.batch_size_train
        whole = min(stop, self.samples // size)
        losses = []
        if whole > start:
            losses.append(self._call(epoch, order, start * size, whole * size, size))
        if stop > whole:
            losses.append(self._call(epoch, order, whole * size, self.samples, self.samples - whole * size))
        return np.concatenate(losses)

    def _images(self, steps: int) -> int:
        """The number of images that the first steps of an epoch visit."""
        return min(steps * self.config.params.batch_size_train, self.samples)

    def _call(self, epoch: int, order: np.ndarray, start: int, stop: int, size: int) -> np.ndarray:
        """Trains on the samples visited as number [start, stop) of an epoch, in batches of this size."""
        bits = self._bits(epoch, start, stop)
        return self.trainer.steps(order[start:stop].reshape(-1, size), bits.reshape(-1, size, bits.shape[1]))

    def _inspect(self, epoch: int, order: np.ndarray, step: int) -> dict[str, np.ndarray]:
        size = self.config.params.batch_size_train
        start, stop = step * size, min((step + 1) * size, self.samples)
        return self.trainer.inspect(order[start:stop], self._bits(epoch, start, stop))

    def _bits(self, epoch: int, start: int, stop: int) -> np.ndarray:
        params = self.config.params
        return randomness.dropout_bits(params.seed, epoch, params.model, start, stop)

    def _finish_epoch(self, epoch: int, name: str, whole: bool) -> None:
        weights = fingerprint(layout.weights_of(self.trainer.state()))
        self.ranks.agree({f"the weights after step {self.step}": weights})
        if not self.writes:
            return
        started = time.perf_counter()
        test_loss, correct, total = self.trainer.evaluate()
        row: dict[str, Any] = {
            "epoch": epoch,
            "step": self.step,
            "train_loss": self._mean_loss(),
            "test_loss": test_loss,
            "test_accuracy": correct / total,
            "train_seconds": self.seconds,
            "test_seconds": time.perf_counter() - started,
            "fingerprint": weights,
        }
        self.times.evaluated(epoch, row["test_accuracy"])
        measured = (row["train_loss"], test_loss, 100 * row["test_accuracy"], row["train_seconds"], row["test_seconds"])
        log.info("%s  train loss %.4f  test loss %.4f  accuracy %.2f%%  %.1f s + %.1f s", name, *measured)
        if whole:
            self.metrics, self.losses, self.seconds = [*self.metrics, row], [], 0.0
            self._write_metrics()
        else:  # a run that resumes from here goes on in the epoch, so its line is not the epoch's
            self._write_metrics(row)
        self._save()
        self._trace()

    def _mean_loss(self) -> float:
        """The mean over the samples of the epoch so far; the sum is rounded exactly, so the order does not matter."""
        size = self.config.params.batch_size_train
        sizes = [min(size, self.samples - step * size) for step in range(len(self.losses))]
        return math.fsum(loss * n for loss, n in zip(self.losses, sizes, strict=True)) / sum(sizes)

    def _save(self) -> None:
        if not self.writes:
            return
        current = self._checkpoint()
        path = checkpoint.save(self.models, current)
        checkpoint.remove_superseded(self.models, path, current.record)

    def _trace(self, start: bool = False) -> None:
        every = self.config.params.trace_steps
        if self.writes and every and (start or self.step % every == 0 or self.step == self.last_step):
            self.trace.add(self._checkpoint())

    def _checkpoint(self) -> Checkpoint:
        record = CheckpointRecord(
            self.task, self.run, self.step, self.steps_per_epoch, self.deciding, self.metrics, self.seconds
        )
        return Checkpoint(self.trainer.state(), np.array(self.losses, np.float32), record)

    def _write_metrics(self, *unfinished: dict) -> None:
        if not self.writes:
            return
        lines = "".join(json.dumps(row) + "\n" for row in [*self.metrics, *unfinished])
        write_atomically(self.folder / "metrics.jsonl", lines.encode())
