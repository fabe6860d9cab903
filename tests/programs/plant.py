"""Stands in for a framework's Python, and plants a difference in the training that `python -m repro` is asked for.

REPRO_PYTHON names it. PLANT is STEP:TENSOR:ELEMENT, where the last bit of one element is flipped after a step, `chance`,
where the first step ends in weights that are left to chance, or `hang:STEP`, where no step follows on that one.
"""

import os
import runpy
import signal
import sys

import numpy as np

from repro.trainers.loop import training


def plant(run: training.TrainingRun) -> None:
    """Wraps the trainer's steps()."""
    trainer = run.trainer
    honest, done = trainer.steps, 0

    def steps(batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        nonlocal done
        if os.environ["PLANT"] == f"hang:{done}":
            signal.pause()  # until it is killed
        losses = honest(batches, dropout_bits)
        first, done = done, done + len(batches)
        state = trainer.state()
        if os.environ["PLANT"] == "chance":
            if first == 0:
                state["dense2.bias"] = np.frombuffer(os.urandom(10), np.uint8) / np.float32(1000)
                trainer.load_state(state)
            return losses
        if os.environ["PLANT"].startswith("hang:"):
            return losses
        step, tensor, element = os.environ["PLANT"].split(":")
        if first < int(step) <= done:
            state[tensor].reshape(-1).view(np.uint32)[int(element)] ^= 1
            trainer.load_state(state)
        return losses

    trainer.steps = steps  # type: ignore[method-assign]


if __name__ == "__main__":
    honest_train = training.TrainingRun.train

    def train(run: training.TrainingRun) -> str:
        plant(run)
        return honest_train(run)

    training.TrainingRun.train = train  # type: ignore
    sys.argv = sys.argv[sys.argv.index("repro") :]
    runpy.run_module("repro", run_name="__main__", alter_sys=True)
