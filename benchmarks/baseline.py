"""Options, stopwatch and output of the baseline loops.

    .venv/pytorch/bin/python -m benchmarks.tutorial_pytorch workspace/data --batch-size=32
    .venv/pytorch/bin/python -m benchmarks.tuned_pytorch workspace/data --batch-size=32

train whole epochs; the last line is JSON. The trainers are compared with these loops. Network, optimizer and data are those of mnist_*.py, so that the work is the
same; the loop around them is the tutorial's, or one that was tuned by hand for nothing but speed.
"""

import argparse
import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from repro.fingerprint import fingerprint
from repro.trainers.loop import config, data
from repro.trainers.loop.data import Dataset
from repro.trainers.loop.times import ProcessTimes, age, peak_memory

LEARNING_RATE, MOMENTUM, SEED = 0.01, 0.5, 0


@dataclass
class Baseline:
    """One run of a loop: its options and its stopwatch."""

    dataset: Dataset
    batch_size: int
    epochs: int
    steps: int
    """Steps of an epoch, at most; fewer than it has where it is cut short, to save time."""
    workers: int
    threads: int
    times: ProcessTimes = field(default_factory=ProcessTimes)
    lasted: list[float] = field(default_factory=list)
    """Seconds of each epoch; where it was cut short, of a whole one."""
    window: tuple[float, float] = (0.0, 0.0)
    """Begin and end of the last epoch, in seconds since the process was started."""

    def timed(self, batches: Iterator) -> Iterator:
        """The batches of an epoch, timed from where the first is asked for; steps left out count as all but it."""
        started = time.perf_counter()
        first = 0.0
        for step, batch in enumerate(itertools.islice(batches, self.steps)):
            if step == 1:
                first = time.perf_counter() - started
                self.times.reached("stepped")
            yield batch
        rest = time.perf_counter() - started - first
        self.window = (age() - rest, age())
        whole = math.ceil(len(self.dataset.train_labels) / self.batch_size)
        self.lasted.append(first + rest * (whole - 1) / (self.steps - 1))

    def call(self, train: Callable[[np.ndarray], None]) -> None:
        """Times train(batches), int32 [S, B], which trains on an epoch's whole batches and waits, for each epoch."""
        steps = min(self.steps, len(self.dataset.train_labels) // self.batch_size)
        for epoch in range(1, self.epochs + 1):
            order = np.random.default_rng(SEED + epoch).permutation(len(self.dataset.train_labels)).astype(np.int32)
            batches = order[: steps * self.batch_size].reshape(steps, self.batch_size)
            started = age()
            train(batches)
            self.window = (started, age())
            self.lasted.append((age() - started) * len(self.dataset.train_labels) / batches.size)

    def finish(self, version: str, weights: list[np.ndarray], accuracy: float | None) -> None:
        """Prints what was measured; the fingerprint is of the weights in the framework's own order and layout."""
        steady = self.lasted[1:]
        print(
            json.dumps(
                {
                    "version": version,
                    "batch_size": self.batch_size,
                    "steps": self.steps * self.epochs,
                    "first_epoch": self.lasted[0],
                    "seconds_per_epoch": sum(steady) / len(steady),
                    "moments": self.times.moments,
                    "window": self.window,
                    "peak_memory": peak_memory(),
                    "test_accuracy": accuracy,
                    "fingerprint": fingerprint({f"{i:02}": array for i, array in enumerate(weights)}),
                }
            )
        )

    @property
    def whole(self) -> bool:
        """True if the epochs are trained to their ends."""
        return self.steps * self.batch_size >= len(self.dataset.train_labels)


def begin() -> Baseline:
    """Reads the options and the data. The framework has been imported by now."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path, help="the folder that holds MNIST/raw")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2, help="at least 2: the first one is not counted")
    parser.add_argument("--workers", type=int, default=4, help="of the tutorial's loader; TensorFlow's has none")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of tuned loops; JAX reads PJRT_NPROC")
    parser.add_argument("--steps", type=int, default=60_000, help="cut each epoch short after this number")
    options = parser.parse_args()
    if options.batch_size < 1 or options.epochs < 2 or options.steps < 2:
        parser.error("--batch-size must be at least 1, --epochs and --steps at least 2")
    times = ProcessTimes()
    times.reached("imported")
    dataset = data.load(config.Data(), options.data)
    most = math.ceil(len(dataset.train_labels) / options.batch_size)
    steps = min(options.steps, most)
    return Baseline(dataset, options.batch_size, options.epochs, steps, options.workers, options.threads, times)
