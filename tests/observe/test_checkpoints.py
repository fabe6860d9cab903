"""Checkpoints are copied as they were after the step that they were written after."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from repro.record import contents, record
from repro.record.checkpoints import CHECKPOINTS, checkpoints
from repro.record.record import Record
from support.commands import repro
from support.observed import interpreter
from support.runs import PROGRAMS

SCRIPT = PROGRAMS / "checkpoints_written.py"


def recorded(folder: Path, pattern: str, mode: str) -> Record:
    shutil.copy(SCRIPT, folder / "train.py")
    words = ["--to", "record", "--checkpoints", pattern, "--", sys.executable, "train.py", "{run}", mode]
    done = repro("record", *words, cwd=folder)
    assert done.returncode == 0 and "repro: 6 steps " in done.stderr, done.stderr
    return record.read(folder / "record")


def held(of: Record) -> dict[int, dict[str, str]]:
    """The number in each file that lay there, by the step of the checkpoint."""
    assert isinstance(of.content.checkpoints, list)
    return {
        one.step: {name: value(of.path / CHECKPOINTS / file.copy) for name, file in one.files.items()}
        for one in checkpoints(of.content.checkpoints)
    }


def value(path: Path) -> str:
    """The hash of the one array in a file."""
    ((_, text),) = (contents.read(path) or {}).items()
    return text.split()[-1]


def digest(number: int, folder: Path) -> str:
    np.save(folder / "value.npy", number)
    return value(folder / "value.npy")


@pytest.mark.parametrize("pattern", ["{run}/w.npy", "{run}/[a-z]*"])
def test_a_file_that_is_written_over(tmp_path: Path, pattern: str) -> None:
    of = recorded(tmp_path, pattern, "each")
    assert held(of) == {step: {"{run}/w.npy": digest(step, tmp_path)} for step in range(1, 7)}


def test_folders_that_are_removed_again(tmp_path: Path) -> None:
    of = recorded(tmp_path, "{run}/step-*", "folders")
    two, four, six = ({f"{{run}}/step-{step}/w.npy": digest(step, tmp_path)} for step in (2, 4, 6))
    assert held(of) == {2: two, 4: two | four, 6: four | six}


def test_what_a_forked_child_wrote_is_seen_once(tmp_path: Path) -> None:
    of = recorded(tmp_path, "{run}/w.npy", "forked")
    assert isinstance(of.content.checkpoints, list)
    assert [change.step for change in of.content.checkpoints] == [3]


def test_what_cannot_be_read_is_no_checkpoint(tmp_path: Path) -> None:
    of = recorded(tmp_path, "{run}/w.npy", "unreadable")
    assert held(of) == {} and of.unseen == []


def test_a_copy_that_fails_stops_no_training(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        SCRIPT.read_text().replace("import repro\n", "import shutil\n\nimport repro\n\nshutil.copyfile = None\n")
    )
    words = ["--to", "record", "--checkpoints", "{run}/w.npy", "--", sys.executable, "train.py", "{run}", "each"]
    done = repro("record", *words, cwd=tmp_path)
    of = record.read(tmp_path / "record")
    assert done.returncode == 0 and of.steps == 6 and of.unseen == []
    assert any("checkpoints after step 1 were not copied" in note for note in of.content.notes)


def test_in_pytorch_each_copy_is_of_its_step(tmp_path: Path) -> None:
    program = str(PROGRAMS / "resumable_training.py")
    words = [
        "--to",
        "record",
        "--checkpoints",
        "{run}/*.pt",
        "--",
        str(interpreter("pytorch")),
        program,
        "--out",
        "{run}",
    ]
    done = repro("record", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    of = record.read(tmp_path / "record")
    assert isinstance(of.content.checkpoints, list)
    steps = {
        one.step: (contents.read(of.path / CHECKPOINTS / file.copy, name) or {})["step"]
        for one in checkpoints(of.content.checkpoints)
        for name, file in one.files.items()
    }
    assert steps == {step: f"number {step}" for step in range(2, 13, 2)}
