"""Shared code of the examples: arguments, random numbers, initial weights, the loop, checkpoints, ranks.

It knows no framework. A trainer, as in gpt_pytorch.py, knows nothing of files, and takes and gives NumPy arrays.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from repro.errors import ReproError, UsageError
from repro.files import write_atomically
from repro.fingerprint import fingerprint
from repro.portable.definitions.ranks import SingleProcess
from repro.trainers.loop import environment, launch
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import LOOPBACK, RankInfo, rank_from_environment

Arrays = dict[str, np.ndarray]
Mode = Literal["auto", "eager", "compiled"]
WEIGHTS, BATCHES = 1, 2
"""The purposes of random numbers: each has a stream of its own."""


class Task(Protocol):
    """A training without its framework: gpt.py, resnet.py."""

    BATCH: int
    STEPS: int
    """Of the whole training, which the learning rates are for."""
    WEIGHTS: dict[str, tuple[int, ...]]
    """Shapes by name, in the order in which the network has them; kernels are [in, out] and [h, w, in, out]."""
    STATISTICS: dict[str, tuple[int, ...]]
    """Likewise of what the network keeps, but does not learn."""
    SLOTS: tuple[str, ...]
    """The names of what the optimizer keeps for each weight."""

    def batch(self, seed: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of a step, counted from 0."""

    def rate(self, step: int) -> float:
        """The learning rate of a step."""

    def evaluated(self, evaluate: Callable[[np.ndarray, np.ndarray], float]) -> str:
        """Describes the result on data that were not trained on, given a trainer's `evaluate`."""


class Trainer(Protocol):
    """A training in a framework."""

    ranks: SingleProcess

    def __init__(self, params: Params, mode: Mode, rank_info: RankInfo | None) -> None: ...
    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on its part of a batch and returns the loss of the whole."""

    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float: ...
    def state(self) -> Arrays: ...
    def load_state(self, state: Arrays, step: int) -> None: ...


def main(framework: str, task: Task, trainer: type[Trainer]) -> None:
    """Trains as the command line says; the last line is the fingerprint of the weights and statistics."""
    try:
        options = arguments(task)
        mine = rank_from_environment()
        if options.ranks > 1 and mine is None:
            sys.exit(start(options.ranks))
        params = Params(
            seed=options.seed,
            device=options.device,
            threads=options.threads,
            engine=options.engine,
            ranks=mine.size if mine else 1,
            numerics="portable",
        )
        os.environ.update(environment.variables(framework, params))
        train(task, trainer(params, options.mode, mine), options)
    except ReproError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def arguments(task: Task) -> argparse.Namespace:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--steps", type=int, default=task.STEPS, help="train up to this step")
    parser.add_argument("--seed", type=int, default=0, help="of initial weights and batches")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--ranks", type=int, default=1, help="processes that share each batch")
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto")
    parser.add_argument(
        "--engine", choices=("auto", "float64", "int8", "int16"), default="auto", help="of exact products"
    )
    parser.add_argument(
        "--mode", choices=get_args(Mode), default="auto", help="auto is the faster one: eager in PyTorch on a CPU"
    )
    parser.add_argument("--checkpoint", type=Path, help="a file to write at the end, with --resume to go on from")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, of whatever framework")
    parser.add_argument("--evaluate", action="store_true", help="at the end, on what was not trained on")
    options = parser.parse_args()
    if min(options.steps, options.threads, options.ranks) < 1 or options.seed < 0:
        parser.error("--steps, --threads and --ranks must be at least 1, and --seed at least 0")
    if options.resume and not options.checkpoint:
        parser.error("--resume needs --checkpoint=FILE")
    return options


def find_compiler() -> None:
    """UsageError where there is no C++ compiler, which torch.compile needs on a CPU."""
    name = os.environ.get("CXX", "g++")
    if not shutil.which(name):
        raise UsageError(f"--mode=compiled: there is no C++ compiler {name}; name one in CXX, or leave out --mode")


def train(task: Task, trainer: Trainer, options: argparse.Namespace) -> None:
    """The loop over the steps."""
    ranks = trainer.ranks
    if task.BATCH % ranks.size:
        raise UsageError(f"--ranks={ranks.size}: ranks must divide the batch, of {task.BATCH}")
    mine, _ = ranks.share(task.BATCH)
    state, first = initial_state(task, options.seed), 0
    if options.resume:
        state, first = load(task, options)
    trainer.load_state(state, first)
    began = time.perf_counter()
    for step in range(first, options.steps):
        inputs, targets = task.batch(options.seed, step)
        loss = trainer.step(task.rate(step), inputs[mine], targets[mine])
        if ranks.rank == 0 and (step + 1 in (first + 1, options.steps) or (step + 1) % 10 == 0):
            print(f"step {step + 1}  loss {loss:.6f}  {time.perf_counter() - began:.1f} s", flush=True)
    state = trainer.state()
    if ranks.rank == 0:
        if options.checkpoint:
            write_atomically(options.checkpoint, save(state | {"step": np.array([options.seed, options.steps])}))
        if options.evaluate:
            print(task.evaluated(trainer.evaluate))
        print("fingerprint", fingerprint({name: state[name] for name in (*task.WEIGHTS, *task.STATISTICS)}))
    ranks.close()


def load(task: Task, options: argparse.Namespace) -> tuple[Arrays, int]:
    """A checkpoint's state and step. UsageError where it is not there, or of another training."""
    path, wanted = options.checkpoint, initial_state(task, options.seed)
    try:
        state = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"--checkpoint={path}: it cannot be read ({error}); run without --resume first") from None
    seed, step = state.pop("step", np.array([-1, 0]))
    fits = {name: array.shape for name, array in state.items()} == {name: array.shape for name, array in wanted.items()}
    if not fits or seed != options.seed or step > options.steps:
        raise UsageError(f"--checkpoint={path}: it is of another network or seed, or past --steps={options.steps}")
    return state, int(step)


def start(ranks: int) -> int:
    """Runs this program so many times on this machine, until all have ended or one has failed; 0, or its exit code."""
    port = launch.free_port(ranks)
    infos = [RankInfo(rank, ranks, (LOOPBACK,), port, rank) for rank in range(ranks)]
    running = [subprocess.Popen([sys.executable, *sys.argv], env=os.environ | each.variables()) for each in infos]
    try:
        while None in (codes := [process.poll() for process in running]) and not any(codes):
            time.sleep(0.05)
        return max(abs(code or 0) for code in codes)
    finally:
        for process in running:
            process.kill()


# --- random numbers ---------------------------------------------------------------------------------------------------


def words(seed: int, purpose: int, number: int, count: int) -> np.ndarray:
    """Random words, uint64 [count], of NumPy's Philox, whose raw stream stays as it is."""
    return np.random.Philox(key=np.array([seed, purpose], np.uint64), counter=[0, 0, number, 0]).random_raw(count)


def initial_state(task: Task, seed: int) -> Arrays:
    """Kernels uniform in +-1 / sqrt(inputs), scales and variances 1, all else 0; float32, equal on every machine.

    Integers of 24 bits are scaled, so no function of a C library is called.
    """
    state: Arrays = {}
    for number, (name, shape) in enumerate((task.WEIGHTS | task.STATISTICS).items()):
        kind = name.rpartition(".")[2]
        if kind in ("kernel", "embedding"):
            inputs = shape[-1] if kind == "embedding" else math.prod(shape[:-1])
            signed = (words(seed, WEIGHTS, number, math.prod(shape)) >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1
            state[name] = (signed * (1 / math.sqrt(inputs))).astype(np.float32).reshape(shape)
        else:
            state[name] = np.full(shape, kind in ("scale", "var"), np.float32)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in task.WEIGHTS.items()}
    return state | {f"{slot}/{name}": zero for slot in task.SLOTS for name, zero in zeros.items()}
