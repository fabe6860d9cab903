"""Folders of runs of the reference trainers, as if they had been trained."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from repro.fingerprint import fingerprint
from repro.trainers.loop import checkpoint, layout, randomness
from repro.trainers.loop.checkpoint import Checkpoint, CheckpointRecord
from repro.trainers.loop.trace import TraceWriter

STEPS, EVERY = 8, 2
State = dict[str, np.ndarray]


def flip(name: str, element: int = 3) -> Callable[[State], None]:
    """Changes the last bit of one element."""

    def change(state: State) -> None:
        state[name].reshape(-1).view(np.uint32)[element] ^= 1

    return change


class Folder:
    """Writes the folders of runs of a training in which every step halves all weights."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def run(
        self,
        name: str,
        plant: dict[int, Callable[[State], None]] | None = None,
        traced: bool = True,
        losses: dict[int, float] | None = None,
        steps: int = STEPS,
        kept: bool = False,
        **facts: Any,
    ) -> Path:
        folder = self.workspace / "outputs" / "jax" / name
        folder.mkdir(parents=True)
        trace, state = TraceWriter(folder), randomness.initial_state(0, "lenet", "sgd")
        for step in range(steps + 1):
            if step:
                state = {key: array * np.float32(0.5) for key, array in state.items()}
                trace.saw(np.array([(losses or {}).get(step, 1 / step)], np.float32))
            (plant or {}).get(step, lambda _: None)(state)
            current = Checkpoint(state, np.zeros(0, np.float32), CheckpointRecord("jax", name, step, 1875, {}))
            if traced and step % EVERY == 0:
                trace.add(current)
        final = fingerprint(layout.weights_of(state))
        if kept:
            checkpoint.save(self.workspace / "model" / "jax", current)
        row = {"epoch": 1, "step": steps, "test_loss": float(state["dense2.bias"][0]), "fingerprint": final}
        (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        params = {
            "seed": 0,
            "batch_size_train": 32,
            "optimizer": "sgd",
            "learning_rate": 0.01,
            "momentum": 0.5,
            "numerics": "deterministic",
        } | facts.pop("params", {})
        experiment = {
            "task": "jax",
            "config": {"params": params, "data": {"dataset": "mnist"}, "output": {"data_path": "/nowhere"}},
            "framework": {"framework": "JAX", "version": "1", "device": "cpu", "threads": 2},
            "sha256": {"final_weights": final},
        } | facts
        (folder / "experiment.json").write_text(json.dumps(experiment))
        return folder
