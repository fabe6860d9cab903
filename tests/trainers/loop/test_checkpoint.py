"""Checkpoints: what is read is what was written, to the bit, or an error; and no crash costs the last good one."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import save as to_bytes

from repro.errors import ReproError, UsageError
from repro.fingerprint import fingerprint
from repro.trainers.loop import checkpoint
from repro.trainers.loop.checkpoint import Checkpoint, CheckpointRecord
from repro.trainers.loop.config import PORTABLE

REPOSITORY = Path(__file__).parents[3]


def make(step: int = 13, run: str = "2026-01-01", state: dict[str, np.ndarray] | None = None) -> Checkpoint:
    """A checkpoint at a step of a run with 10 steps an epoch."""
    arrays = state or {"w": np.array([[1.5, -0.0], [np.nan, 1e-45]], np.float32), "count": np.array(step, np.float32)}
    losses = np.linspace(2.3, 0.1, step % 10).astype(np.float32)
    metrics = [{"epoch": epoch, "train_loss": 0.1 + epoch / 3, "accuracy": 0.9} for epoch in range(step // 10)]
    return Checkpoint(
        arrays, losses, CheckpointRecord("pytorch", run, step, 10, {"params.seed": 0, "device": "cpu"}, metrics, 0.1)
    )


def bits(saved: Checkpoint) -> tuple[str, bytes, dict[str, object]]:
    return fingerprint(saved.state), saved.losses.tobytes(), asdict(saved.record)


def failure(path: Path) -> str:
    with pytest.raises(ReproError) as caught:
        checkpoint.load(path)
    assert str(path) in str(caught.value)
    assert "params.resume=" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1
    return str(caught.value)


# --- round trip -----------------------------------------------------------------------------------------------------


def test_what_is_read_is_what_was_written(tmp_path: Path):
    written = make()
    read = checkpoint.load(checkpoint.save(tmp_path, written))
    assert bits(read) == bits(written)
    assert read.losses.dtype == np.float32
    assert json.dumps(read.record.metrics) == json.dumps(written.record.metrics)  # its lines, to the letter


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8).map("w.{}/k".format),
        arrays_of.arrays(np.float32, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4)),
        min_size=1,
        max_size=4,
    )
)
def test_any_arrays_come_back(tmp_path: Path, state: dict[str, np.ndarray]):
    written = make(state=state)
    assert bits(checkpoint.load(checkpoint.save(tmp_path, written))) == bits(written)


def test_a_transposed_array_comes_back(tmp_path: Path):
    written = make(state={"w": np.arange(6, dtype=np.float32).reshape(2, 3).T})
    assert bits(checkpoint.load(checkpoint.save(tmp_path, written))) == bits(written)


@pytest.mark.parametrize(
    ("step", "name"),
    [(0, "epoch_0000"), (3, "epoch_0001_step_000003"), (10, "epoch_0001"), (13, "epoch_0002_step_000003")],
)
def test_the_name_says_the_epoch_and_the_step(tmp_path: Path, step: int, name: str):
    assert checkpoint.save(tmp_path / "new" / "folder", make(step)).name == f"{name}.safetensors"
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == [f"{name}.json", f"{name}.safetensors"]


def test_the_copy_beside_it_holds_the_record(tmp_path: Path):
    written = make()
    path = checkpoint.save(tmp_path, written)
    assert json.loads(path.with_suffix(".json").read_text()) == asdict(written.record)
    path.with_suffix(".json").write_text("{}")  # a copy for people: not read
    assert bits(checkpoint.load(path)) == bits(written)


def test_a_checkpoint_of_the_first_version_is_read():
    written, read = make(), checkpoint.load(Path(__file__).parent / "data" / "format-1.safetensors")
    assert fingerprint(read.state) == fingerprint(written.state)
    assert (read.record.step, read.losses.tobytes()) == (13, written.losses.tobytes())


# --- damage ---------------------------------------------------------------------------------------------------------


def test_every_truncation_is_noticed(tmp_path: Path):
    path = checkpoint.save(tmp_path, make())
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        failure(path)


def test_every_flipped_bit_is_noticed_or_harmless(tmp_path: Path):
    """One bit in each byte of the length, the header with the record, and the arrays."""
    written = make()
    path = checkpoint.save(tmp_path, written)
    content = path.read_bytes()
    chosen = random.Random(0)
    accepted = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << chosen.randrange(8)
        path.write_bytes(damaged)
        try:
            read = checkpoint.load(path)
        except ReproError:
            continue
        assert bits(read) == bits(written)
        accepted += 1  # such as a space of the padding that became another white space
    assert accepted < 8


def rewrite(path: Path, **changes: object) -> None:
    """Changes the record in a checkpoint, and nothing else."""
    saved = checkpoint.load(path)
    record = json.dumps(asdict(saved.record) | changes, sort_keys=True)
    path.write_bytes(to_bytes(saved.state | {checkpoint.LOSSES: saved.losses}, metadata={checkpoint.KEY: record}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"step": 14}, "damaged"),
        ({"deciding": {"params.seed": 1, "device": "cpu"}}, "damaged"),
        ({"metrics": []}, "damaged"),
        ({"step": "many"}, "damaged"),
        ({"colour": "red"}, "colour"),
        ({"format": 2}, "has format 2, this version reads 1"),
        ({"format": 2, "colour": "red"}, "has format 2, this version reads 1"),
    ],
)
def test_a_changed_record_is_noticed(tmp_path: Path, changes: dict[str, object], said: str | None):
    path = checkpoint.save(tmp_path, make())
    rewrite(path, **changes)
    if said is None:  # what proves that rewrite() itself is harmless
        checkpoint.load(path)
    else:
        assert said in failure(path)


def test_an_exchanged_array_is_noticed(tmp_path: Path):
    path = checkpoint.save(tmp_path, make())
    saved = checkpoint.load(path)
    saved.state["w"] = saved.state["w"][::-1].copy()
    metadata = {checkpoint.KEY: json.dumps(asdict(saved.record), sort_keys=True)}
    path.write_bytes(to_bytes(saved.state | {checkpoint.LOSSES: saved.losses}, metadata=metadata))
    assert "damaged" in failure(path)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (None, "was not written by this project"),
        ({"format": "pt"}, "was not written by this project"),
        ({"repro": "{"}, "record that cannot be read"),
        ({"repro": "[]"}, "record that cannot be read"),
        ({"repro": "{}"}, "record that cannot be read"),
        ({"repro": '{"format": 1}'}, "record that cannot be read"),
    ],
)
def test_a_foreign_safetensors_file_is_refused(tmp_path: Path, metadata: dict[str, str] | None, said: str):
    path = tmp_path / "epoch_0001.safetensors"
    path.write_bytes(to_bytes({"w": np.zeros(3, np.float32)}, metadata=metadata))
    assert said in failure(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path):
    assert "does not exist" in failure(tmp_path / "epoch_0001.safetensors")
    assert "cannot be read" in failure(tmp_path)


# --- crashes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_last_good_one(tmp_path: Path, monkeypatch, call: str, error: BaseException):
    def fail(*arguments: object) -> None:
        raise error

    first = make(20)
    checkpoint.save(tmp_path, first)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        for step in (20, 21):  # over the last one, and beside it
            with pytest.raises(type(error)):
                checkpoint.save(tmp_path, make(step, state={"w": np.ones(3, np.float32)}))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    newest = checkpoint.newest(tmp_path)
    assert newest is not None
    assert bits(newest) == bits(first)


WRITER = """
import sys
from pathlib import Path
import numpy as np
from repro.trainers.loop import checkpoint
from repro.trainers.loop.checkpoint import Checkpoint, CheckpointRecord
for step in range(1, 10**6):
    state = {"w": np.full(50_000, step, np.float32)}
    record = CheckpointRecord("jax", "run", step, 10, {})
    path = checkpoint.save(Path(sys.argv[1]), Checkpoint(state, np.zeros(step % 10, np.float32), record))
    checkpoint.remove_superseded(Path(sys.argv[1]), path, record)
    print(step, flush=True)
"""


@pytest.mark.parametrize("attempt", range(5))
def test_a_killed_writer_leaves_the_last_good_one(tmp_path: Path, attempt: int):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(3):
            assert child.stdout.readline()
        time.sleep(random.Random(attempt).uniform(0, 0.03))  # any moment is right
        child.send_signal(signal.SIGKILL)
        finished = [int(line) for line in child.stdout.read().split()]  # besides the first three
        assert child.wait() == -signal.SIGKILL
    newest = checkpoint.newest(tmp_path)
    assert newest is not None
    assert newest.record.step >= max(finished, default=3)
    assert (newest.state["w"] == newest.record.step).all()


# --- several in a folder --------------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_is_the_last_of_the_newest_run(tmp_path: Path):
    assert checkpoint.newest(tmp_path) is None
    assert checkpoint.newest(tmp_path / "no such folder") is None
    for step, run in [(40, "2026-01-01"), (20, "2026-01-02"), (23, "2026-01-02"), (10, "2026-01-02")]:
        checkpoint.save(tmp_path, make(step, run))
    newest = checkpoint.newest(tmp_path)
    assert newest is not None
    assert (newest.record.run, newest.record.step) == ("2026-01-02", 23)


def test_the_newest_does_not_pass_over_a_damaged_one(tmp_path: Path):
    checkpoint.save(tmp_path, make(10))
    path = checkpoint.save(tmp_path, make(20))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ReproError, match="epoch_0002"):
        checkpoint.newest(tmp_path)


def test_what_is_superseded_goes_and_nothing_else(tmp_path: Path):
    for step, run in [(40, "2026-01-01"), (10, "2026-01-02"), (15, "2026-01-02"), (20, "2026-01-02")]:
        checkpoint.save(tmp_path, make(step, run))
    (tmp_path / "epoch_0007.safetensors").write_text("mine")
    (tmp_path / "notes.safetensors").write_text("mine")
    kept = make(23, "2026-01-02")
    checkpoint.remove_superseded(tmp_path, checkpoint.save(tmp_path, kept), kept.record)
    steps = ("epoch_0001", "epoch_0002", "epoch_0003_step_000003")
    ours = [f"{name}.{ending}" for name in steps for ending in ("json", "safetensors")]
    assert names(tmp_path) == sorted([*ours, "epoch_0007.safetensors", "notes.safetensors"])


# --- the same configuration -----------------------------------------------------------------------------------------


def test_the_same_configuration_may_resume():
    checkpoint.check_same("auto", make().record, {"params.seed": 0, "device": "cpu"})


@pytest.mark.parametrize(
    ("now", "key", "was"),
    [
        ({"params.seed": 1, "device": "cpu"}, "params.seed", "0"),
        ({"params.seed": 0, "device": "gpu"}, "device", "cpu"),
        ({"params.seed": 0, "device": "cpu", "params.momentum": 0.5}, "params.momentum", "None"),
        ({"device": "cpu"}, "params.seed", "0"),
        ({"params.seed": 0, "device": "cpu", PORTABLE: 2}, PORTABLE, "None"),
    ],
)
def test_another_configuration_is_refused_with_the_key(now: dict[str, object], key: str, was: str):
    with pytest.raises(UsageError) as caught:
        checkpoint.check_same("auto", make().record, now)
    assert f"{key}={was}" in str(caught.value)
    assert f"{key}={now.get(key)}" in str(caught.value)
