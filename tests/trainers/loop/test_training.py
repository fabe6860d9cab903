"""repro.trainers.loop.training: the loop, with a small trainer in NumPy whose every bit depends on all that went before."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.errors import ReproError
from repro.fingerprint import fingerprint
from repro.trainers.loop import layout, randomness
from support.fake_trainer import EPOCHS, LAST, SAMPLES, STEPS, Workspace, fake_workspace, lines


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return fake_workspace(tmp_path, monkeypatch)


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


CHUNKS = [
    {"log_interval": 1},
    {"log_interval": 3},
    {"checkpoint_steps": 1},
    {"checkpoint_steps": 2, "log_interval": 3},
    {"num_workers": 2},
    {"batch_size_test": 3},
]


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
