"""repro.trainers.loop.training: resuming, with a small trainer in NumPy whose every bit depends on all that went before."""

from pathlib import Path
from typing import Any

import pytest

from repro.errors import ReproError, UsageError
from repro.trainers.loop import checkpoint
from support.fake_trainer import LAST, STEPS, FakeTrainer, Workspace, fake_workspace, lines


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return fake_workspace(tmp_path, monkeypatch)


@pytest.fixture
def undisturbed(workspace: Workspace, tmp_path: Path) -> Workspace:
    """Another workspace, for the run that the other one's is to be compared with."""
    return Workspace(tmp_path / "undisturbed", workspace.dataset)


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
        ({"optimizer": "adam"}, "params.optimizer"),  # not momentum, which adam has none of
        ({"numerics": "fast"}, "params.numerics"),
        ({"numerics": "portable"}, "params.numerics"),  # not device, which decides nothing there
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
    newest = checkpoint.newest(workspace.folder / "model" / "fake")
    assert newest is not None
    assert newest.record.deciding["params.seed"] == 1
