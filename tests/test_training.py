"""repro.training: the loop, with a small trainer in NumPy whose every bit depends on all that went before."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro import checkpoint, config, experiment, layout, randomness, training
from repro.data import Dataset
from repro.errors import ReproError, UsageError
from repro.fingerprint import fingerprint
from repro.ranks import ALONE

SAMPLES, BATCH, EPOCHS = 70, 16, 3
STEPS = 5  # an epoch: four whole batches, and one of six samples
LAST = STEPS * EPOCHS


class Killed(BaseException):
    """Stands for a SIGKILL: nothing in the code under test may catch it."""


class FakeTrainer:
    """No learning, but the same shape: each step mixes its batch, labels and dropout bits into every weight."""

    device = "cpu"
    ranks = ALONE

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


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    labels = np.random.default_rng(0).integers(0, 10, SAMPLES).astype(np.int32)
    images = np.zeros((SAMPLES, 28, 28), np.uint8)
    return Dataset("mnist", images, labels, images[:4], labels[:4], tmp_path / "data", {"train-images": "0" * 64})


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
            return training.Run("fake", checked, trainer, self.dataset, folder).train(), folder, trainer
        except Killed:
            return None, folder, trainer

    def checkpoints(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "model" / "fake").glob("*.safetensors"))


@pytest.fixture
def workspace(tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(experiment, "record", lambda *_: {"sha256": {}})  # has tests of its own, and takes time
    monkeypatch.setattr(experiment, "common", lambda _: {})
    monkeypatch.setattr("os.fsync", lambda _: None)
    return Workspace(tmp_path / "workspace", dataset)


@pytest.fixture
def undisturbed(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Another workspace, for the run that the other one's is to be compared with."""
    return Workspace(tmp_path / "undisturbed", workspace.dataset)


def lines(folder: Path) -> list[dict[str, object]]:
    """metrics.jsonl, times apart."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if not key.endswith("_seconds")} for row in rows]


# --- what a run does ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", layout.MODELS)
def test_every_epoch_visits_every_sample_in_its_order(workspace: Workspace, model: str):
    _, _, trainer = workspace.run(seed=7, model=model, log_interval=3)
    assert [len(batch) for batch in trainer.batches] == [16, 16, 16, 16, 6] * EPOCHS
    for epoch in range(1, EPOCHS + 1):
        steps = slice((epoch - 1) * STEPS, epoch * STEPS)
        assert np.concatenate(trainer.batches[steps]).tolist() == randomness.order(7, epoch, SAMPLES).tolist()
        bits = randomness.dropout_bits(7, epoch, model, 0, SAMPLES)
        assert np.array_equal(np.concatenate(trainer.bits[steps]), bits)


def test_what_a_run_leaves(workspace: Workspace):
    result, folder, trainer = workspace.run()
    assert result == fingerprint(layout.weights_of(trainer.state()))
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    keys = ["epoch", "step", "train_loss", "test_loss", "test_accuracy", "train_seconds", "test_seconds", "fingerprint"]
    assert [list(row) for row in rows] == [keys] * EPOCHS
    assert [(row["epoch"], row["step"]) for row in rows] == [(1, 5), (2, 10), (3, 15)]
    assert (rows[-1]["fingerprint"], rows[-1]["test_accuracy"]) == (result, 0.75)
    written = json.loads((folder / "experiment.json").read_text())["sha256"]
    assert written["final_weights"] == result
    assert workspace.checkpoints() == ["epoch_0001", "epoch_0002", "epoch_0003"]


def test_the_train_loss_is_the_mean_over_samples(workspace: Workspace):
    losses = {step: float(np.float32(0.1 * step)) for step in range(1, STEPS + 1)}
    _, folder, _ = workspace.run(loss=losses, n_epochs=1)
    total = math.fsum(losses[step] * size for step, size in zip(losses, [16, 16, 16, 16, 6], strict=True))
    assert lines(folder)[0]["train_loss"] == total / SAMPLES


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_comes_again_and_another_seed_gives_another(workspace: Workspace, seed: int):
    first, again, other = (workspace.run(seed=number)[0] for number in (seed, seed, seed + 1))
    assert first == again
    assert first != other


CHUNKS = [{"log_interval": 1}, {"log_interval": 3}, {"checkpoint_steps": 1}, {"checkpoint_steps": 2, "log_interval": 3},
          {"num_workers": 2}, {"batch_size_test": 3}]  # fmt: skip


@pytest.mark.parametrize("params", CHUNKS)
def test_chunks_change_nothing(workspace: Workspace, params: dict[str, Any]):
    expected, reference, whole = workspace.run()
    result, folder, chunked = workspace.run(**params)
    assert result == expected
    assert lines(folder) == lines(reference)
    assert chunked.batches == whole.batches


def test_calls_are_long_and_end_where_something_is_due(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    assert workspace.run(n_epochs=1)[2].calls == [4, 1]
    assert workspace.run(n_epochs=2, log_interval=3)[2].calls == [3, 1, 1, 1, 3, 1]
    monkeypatch.setattr(layout, "STEPS_PER_CALL", 2)
    assert workspace.run(n_epochs=1)[2].calls == [2, 2, 1]


@pytest.mark.parametrize("model", layout.MODELS)
@pytest.mark.parametrize("batch_size", [1, 128, 60_000])
def test_a_call_holds_no_more_bits_than_fit(model: str, batch_size: int):
    steps = layout.steps_per_call(model, batch_size)
    assert 1 <= steps <= layout.STEPS_PER_CALL
    assert steps == 1 or steps * batch_size * layout.MODELS[model].units <= layout.BYTES_PER_CALL
    assert layout.steps_per_call("lenet", 32) == layout.STEPS_PER_CALL


@pytest.mark.parametrize("batch_size", [1, 35, 69, 70, 71])
def test_any_batch_size_visits_every_sample(workspace: Workspace, batch_size: int):
    _, _, trainer = workspace.run(n_epochs=1, batch_size_train=batch_size)
    assert np.concatenate(trainer.batches).tolist() == randomness.order(0, 1, SAMPLES).tolist()
    assert len(trainer.batches) == math.ceil(SAMPLES / batch_size)


# --- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [1, 4, 5, 6, 14, 15])
def test_max_steps_counts_from_the_first_epochs_first(workspace: Workspace, last: int):
    _, folder, trainer = workspace.run(max_steps=last)
    assert len(trainer.batches) == last
    assert [row["step"] for row in lines(folder)] == [*range(STEPS, last, STEPS), last]


def test_max_steps_beyond_the_epochs_changes_nothing(workspace: Workspace):
    assert len(workspace.run(max_steps=LAST + 1)[2].batches) == LAST


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_the_run_and_harms_no_checkpoint(workspace: Workspace, loss: float):
    with pytest.raises(
        ReproError, match=r"the loss is (nan|inf) at step 8; params.learning_rate=0.01 may be too large"
    ):
        workspace.run(loss={8: loss}, checkpoint_steps=1)
    assert workspace.checkpoints() == ["epoch_0001", "epoch_0002_step_000002"]


# --- resume ---------------------------------------------------------------------------------------------------------


KILLS = [(step, every, "sgd") for step in range(1, LAST + 1) for every in (None, 1, 3)]


@pytest.mark.parametrize(
    ("dies_before", "every", "optimizer"), [*KILLS, (1, 1, "adam"), (9, 1, "adam"), (11, 1, "adam"), (9, 1, "adadelta")]
)
def test_a_killed_run_ends_as_one_that_was_not(
    workspace: Workspace, undisturbed: Workspace, dies_before: int, every: int | None, optimizer: str
):
    expected, reference, whole = undisturbed.run(optimizer=optimizer)
    assert workspace.run(dies_before=dies_before, checkpoint_steps=every, optimizer=optimizer)[0] is None
    result, folder, resumed = workspace.run(resume="auto", checkpoint_steps=every, optimizer=optimizer)
    assert result == expected
    assert lines(folder) == lines(reference)
    done = dies_before - 1
    kept = max(done // STEPS * STEPS, done // every * every if every else 0)
    assert resumed.batches == whole.batches[kept:]


def test_a_run_that_is_killed_again_and_again_ends_the_same(workspace: Workspace, undisturbed: Workspace):
    expected, reference, _ = undisturbed.run()
    for step in (3, 4, 9, 9, 13):
        assert workspace.run(dies_before=step, resume="auto", checkpoint_steps=1)[0] is None
    result, folder, _ = workspace.run(resume="auto", checkpoint_steps=1)
    assert result == expected
    assert lines(folder) == lines(reference)


@pytest.mark.parametrize("last", range(1, LAST))
def test_a_run_that_max_steps_ended_goes_on(workspace: Workspace, undisturbed: Workspace, last: int):
    expected, reference, whole = undisturbed.run()
    workspace.run(max_steps=last)
    result, folder, resumed = workspace.run(resume="auto")
    assert (result, resumed.batches) == (expected, whole.batches[last:])
    assert lines(folder) == lines(reference)


def test_more_epochs_go_on_where_fewer_ended(workspace: Workspace, undisturbed: Workspace):
    expected, reference, _ = undisturbed.run()
    workspace.run(n_epochs=1)
    result, folder, _ = workspace.run(resume="auto")
    assert result == expected
    assert lines(folder) == lines(reference)


@pytest.mark.parametrize("last", [12, LAST])
def test_a_run_that_resumes_at_its_end_says_the_same_again(workspace: Workspace, last: int):
    expected, reference, _ = workspace.run(max_steps=last)
    result, folder, trainer = workspace.run(resume="auto", max_steps=last)
    assert (result, trainer.batches) == (expected, [])
    assert lines(folder) == lines(reference)


def test_a_run_cannot_resume_past_its_end(workspace: Workspace):
    workspace.run(max_steps=8)
    with pytest.raises(ReproError, match="at step 8, past the end of this run at step 7; raise params") as caught:
        workspace.run(resume="auto", max_steps=7)
    assert caught.value.exit_code == 1


def test_never_starts_anew_and_auto_does_where_there_is_nothing(workspace: Workspace):
    assert len(workspace.run(resume="auto")[2].batches) == LAST
    assert len(workspace.run(resume="never")[2].batches) == LAST


def test_a_path_names_the_checkpoint(workspace: Workspace, undisturbed: Workspace):
    expected, reference, whole = undisturbed.run()
    path = undisturbed.folder / "model" / "fake" / "epoch_0001.safetensors"
    result, folder, resumed = workspace.run(resume=str(path))
    assert (result, resumed.batches) == (expected, whole.batches[STEPS:])
    assert lines(folder) == lines(reference)


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"seed": 1}, "params.seed"),
        ({"batch_size_train": 8}, "params.batch_size_train"),
        ({"learning_rate": 0.02}, "params.learning_rate"),
        ({"momentum": 0.9}, "params.momentum"),
        ({"model": "convnet"}, "params.model"),
        ({"optimizer": "adam"}, "params.momentum"),  # the first that differs: adam has none
        ({"numerics": "fast"}, "params.numerics"),
        ({"threads": 1}, "params.threads"),
    ],
)
def test_what_would_change_the_bits_is_refused(workspace: Workspace, params: dict[str, Any], key: str):
    workspace.run(n_epochs=1)
    before = workspace.checkpoints()
    with pytest.raises(UsageError, match=rf"auto was made with {key}=.*, this run has {key}=.*; set {key}="):
        workspace.run(resume="auto", **params)
    assert workspace.checkpoints() == before


def test_another_device_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    workspace.run(n_epochs=1)
    monkeypatch.setattr(FakeTrainer, "device", "gpu")
    with pytest.raises(UsageError, match="device=cpu, this run has device=gpu"):
        workspace.run(resume="auto")


def test_a_new_run_takes_the_place_of_an_older_ones_checkpoints(workspace: Workspace):
    workspace.run()
    workspace.run(seed=1, n_epochs=1)
    assert workspace.checkpoints() == ["epoch_0001"]
    found = checkpoint.newest(workspace.folder / "model" / "fake")
    assert found is not None
    assert found.record.deciding["params.seed"] == 1
