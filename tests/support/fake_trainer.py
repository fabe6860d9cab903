"""A small trainer in NumPy whose every bit depends on all that went before, and a workspace for its runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.trainers.loop import config, experiment, layout, training
from repro.trainers.loop.data import Dataset

SAMPLES, BATCH, EPOCHS = 70, 16, 3
STEPS = 5  # an epoch: four whole batches, and one of six samples
LAST = STEPS * EPOCHS


class Killed(BaseException):
    """Stands for a SIGKILL: nothing in the code under test may catch it."""


class FakeTrainer:
    """No learning, but the same shape: each step mixes its batch, labels and dropout bits into every weight."""

    device = "cpu"
    ranks = SINGLE_PROCESS

    def __init__(
        self, dataset: Dataset, units: int, dies_before: int | None = None, loss: dict[int, float] | None = None
    ) -> None:
        self.dataset, self.units, self.dies_before, self.loss = dataset, units, dies_before, loss or {}
        self.arrays: dict[str, np.ndarray] = {}
        self.batches: list[list[int]] = []
        self.bits: list[np.ndarray] = []
        self.calls: list[int] = []

    def steps(self, batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        assert (batches.dtype, dropout_bits.dtype) == (np.dtype(np.int32), np.dtype(np.uint8))
        assert dropout_bits.shape == (*batches.shape, self.units)
        self.calls.append(len(batches))
        return np.array([self._step(*step) for step in zip(batches, dropout_bits, strict=True)], np.float32)

    def _step(self, batch: np.ndarray, bits: np.ndarray) -> float:
        step = int(self.arrays["conv2.bias"][0]) + 1  # kept in the state, as everything that a step depends on must be
        if step == self.dies_before:
            raise Killed
        self.batches.append(batch.tolist())
        self.bits.append(bits)
        places = np.arange(1, len(batch) + 1)
        seen = int((places * (batch + 3 * self.dataset.train_labels[batch])).sum())
        kept = int((places @ bits * np.arange(self.units)).sum())
        mixed = np.float32(seen % 97 + kept % 89)
        for name, array in self.arrays.items():
            self.arrays[name] = array * np.float32(0.7) + mixed / np.float32(len(name))
        self.arrays["conv2.bias"][0] = step
        return self.loss.get(step, float(mixed) / 97)

    def inspect(self, batch: np.ndarray, dropout_bits: np.ndarray) -> dict[str, np.ndarray]:
        return {"batch": batch.copy(), "bits": dropout_bits.copy()}

    def evaluate(self) -> tuple[float, int, int]:
        return float(self.arrays["dense1.bias"][0]), 3, 4

    def state(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.arrays.items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.arrays = {name: array.copy() for name, array in state.items()}

    def facts(self) -> dict[str, object]:
        return {"framework": "Fake", "version": "1", "device": self.device, "threads": 1}


def dataset(folder: Path) -> Dataset:
    """Without a picture on any image: labels are what a step sees."""
    labels = np.random.default_rng(0).integers(0, 10, SAMPLES).astype(np.int32)
    images = np.zeros((SAMPLES, 28, 28), np.uint8)
    return Dataset("mnist", images, labels, images[:4], labels[:4], folder, {"train-images": "0" * 64})


class Workspace:
    """A workspace in which runs follow one another."""

    def __init__(self, folder: Path, dataset: Dataset) -> None:
        self.folder, self.dataset, self.runs = folder, dataset, 0

    def run(
        self, dies_before: int | None = None, loss: dict[int, float] | None = None, **params: Any
    ) -> tuple[str | None, Path, FakeTrainer]:
        """One run: its fingerprint (None if it was killed), its folder, and its trainer."""
        self.runs += 1
        folder = self.folder / "outputs" / f"run_{self.runs:02d}"
        folder.mkdir(parents=True)
        settings: dict[str, Any] = {"n_epochs": EPOCHS, "batch_size_train": BATCH} | params
        checked = config.Config(
            config.Params(**settings),
            output=config.Output(str(self.folder / "data"), str(self.folder / "model")),
        )
        trainer = FakeTrainer(self.dataset, layout.MODELS[checked.params.model].units, dies_before, loss)
        try:
            return training.TrainingRun("fake", checked, trainer, self.dataset, folder).train(), folder, trainer
        except Killed:
            return None, folder, trainer

    def checkpoints(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "model" / "fake").glob("*.safetensors"))


def fake_workspace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty one, whose runs do without what has tests of its own and takes time."""
    monkeypatch.setattr(experiment, "record", lambda *_: {"sha256": {}})
    monkeypatch.setattr(experiment, "common", lambda _: {})
    monkeypatch.setattr("os.fsync", lambda _: None)
    return Workspace(folder / "workspace", dataset(folder / "data"))


def lines(folder: Path) -> list[dict[str, object]]:
    """metrics.jsonl, times apart."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.endswith("_seconds")} for row in rows]
