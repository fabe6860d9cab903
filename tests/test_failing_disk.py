"""Every file operation of record, verify and a training fails once, one at a time; or a kill comes right after it.

Each time there is one line, nothing that was there is gone, no answer is untrue, and the next run goes on.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from repro import __main__
from repro.errors import ReproError, explained
from repro.machine import facts
from repro.observe.recorder import Recorder
from repro.record import record
from repro.record.recording import Recording
from repro.trainers.loop import checkpoint
from repro.verify import results
from support.commands import straight
from support.failing_disk import FAULTS, KILL, Disk, Killed
from support.fake_trainer import Workspace, fake_workspace, lines

FEW = 41  # of so many operations one fails where not all of them do: another one for each kind of fault

each_fault = pytest.mark.parametrize("fault", FAULTS)
each_number = pytest.mark.parametrize("every", [FEW, pytest.param(1, marks=pytest.mark.slow)])


def numbers(count: int, fault: str, every: int) -> Iterator[int]:
    """The numbers of the operations that fail."""
    return iter(range([*FAULTS].index(fault) * 3 % every, count, every))


class Done:
    """A process that has ended well."""

    pid, returncode = 0, 0

    def wait(self) -> int:
        return 0

    def poll(self) -> int:
        return 0


class Commands:
    """Commands that another process carries out, which the disk does not fail."""

    def __init__(self, folder: Path) -> None:
        self.disk = Disk(folder)

    def start(self, words: Sequence[str], env: dict[str, str], **_: Any) -> Any:
        """Trains for four steps, and writes its weights to the file that it is called with."""
        with self.disk.pause():
            if "REPRO_OBSERVE" in env:
                rows = [{"kind": "process", "pid": 1}]
                rows += [{"kind": "step", "step": step, "hashes": seen} for step, seen in straight().items()]
                rows += [{"kind": "end", "seconds": 0.1}]
                text = "".join(f"{json.dumps(row)}\n" for row in rows)
                (Path(env["REPRO_OBSERVE"]) / "steps" / "1.jsonl").write_text(text)
            Path(words[-1]).write_text("weights")
        return Done()

    @contextlib.contextmanager
    def session(self, words: Sequence[str], *_: Any, **how: Any) -> Iterator[Any]:
        yield self.start(words, how["env"])


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands(tmp_path)
    monkeypatch.setattr("repro.record.running.start", made.start)
    monkeypatch.setattr("repro.record.running.own_session", made.session)
    monkeypatch.setattr(facts, "commit", lambda _: {"commit": None, "dirty": None})
    monkeypatch.setattr("os.fsync", lambda _: None)
    return made


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def call(
    commands: Commands, folder: Path, words: Sequence[str], monkeypatch: pytest.MonkeyPatch, fault: str, number: int
) -> tuple[int | None, Disk]:
    """`repro WORDS` in a folder; its exit code, None where it was killed."""
    monkeypatch.chdir(folder)
    disk = commands.disk = Disk(folder, fault, number)
    with disk.attached(monkeypatch):
        try:
            return __main__.main([*words]), disk
        except Killed:
            return None, disk


def check_said(code: int | None, disk: Disk, error: str) -> None:
    """One line of an error, or none where all went well."""
    rows = [row for row in error.splitlines() if row.startswith("error: ")]
    assert "Traceback" not in error and "Error:" not in error, (disk.failed, error)
    assert len(rows) <= 1, (disk.failed, error)
    if rows:
        assert re.match(
            rf"error: (record: )?[\w./-]+(: | cannot be read \(){os.strerror(FAULTS[disk.fault])}\)?; ", rows[0]
        ), (
            disk.failed,
            rows,
        )


@each_fault
@each_number
def test_a_record(
    fault: str,
    every: int,
    tmp_path: Path,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ("record", "--to", "new", "--output", "*.pt", "--", "train", "new.pt")

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(tmp_path / "before", folder)
        return folder

    (tmp_path / "before").mkdir()
    call(commands, tmp_path / "before", ("record", "--to", "old", "--", "train", "old.pt"), monkeypatch, "", -1)
    _, counted = call(commands, fresh("counted"), words, monkeypatch, "", -1)
    assert len(counted.operations) > 30
    for number in numbers(len(counted.operations), fault, every):
        folder = fresh(f"{number}")
        before = files(folder)
        capfd.readouterr()
        code, disk = call(commands, folder, words, monkeypatch, fault, number)
        said = capfd.readouterr().err
        check_said(code, disk, said)
        assert before.items() <= files(folder).items(), disk.failed
        whole = (folder / "new" / record.FILE).exists()
        if fault != KILL:
            assert said.count("\n") == 1 and (code == 0 or not (folder / "new.pt").exists()), (disk.failed, said)
            assert whole or said.startswith("error: "), disk.failed
        if whole:
            assert record.read(folder / "new").steps == 4
        elif (folder / "new").exists():
            assert __main__.main(["compare", str(folder / "new"), str(folder / "old")]) in (1, 2)
        (folder / "new.pt").unlink(missing_ok=True)
        again = [*words[:2], "again", *words[3:]]
        assert call(commands, folder, again, monkeypatch, "", -1)[0] == 0
        assert record.read(folder / "again").outputs and record.read(folder / "old").steps == 4
        shutil.rmtree(folder)


@each_fault
@each_number
def test_a_verification(
    fault: str,
    every: int,
    tmp_path: Path,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of two questions, with the answers of an earlier one in the file that gets its own."""
    asked = ("--ask", "restart,hash_seed", "--output", "{run}/new.pt", "--json", "answers.json")
    words = ("verify", "--to", "new", *asked, "--", "train", "{run}/new.pt")

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "answers.json").write_text('{"answers": "earlier"}')
        (folder / "mine").write_text("mine")
        return folder

    code, counted = call(commands, fresh("counted"), words, monkeypatch, "", -1)
    assert code == 0 and len(counted.operations) > 150
    expected = json.loads((tmp_path / "counted" / "answers.json").read_text())
    assert [answer["answer"] for answer in expected["answers"]] == ["same", "same"]
    for number in numbers(len(counted.operations), fault, every):
        folder = fresh(f"{number}")
        before = files(folder)
        capfd.readouterr()
        code, disk = call(commands, folder, words, monkeypatch, fault, number)
        told = capfd.readouterr()
        check_said(code, disk, told.err)
        after = files(folder)
        answers = json.loads(after[folder / "answers.json"])
        known = answers != json.loads(before[folder / "answers.json"])
        assert after[folder / "mine"] == before[folder / "mine"]
        assert not known or {one["answer"] for one in answers["answers"]} <= {"same", "not asked"}, (
            disk.failed,
            answers,
        )
        assert code in (0, 1) or fault == KILL, (disk.failed, told)
        assert "differs" not in told.out and "Not reproducible" not in told.out, (disk.failed, told.out)
        if code == 0:
            for one in (answers, expected):
                one["levels"][0]["date"] = ""  # another one in each call
            assert answers == expected, disk.failed
        if (folder / "new" / "pythonhashseed-0").exists() and fault != KILL:  # the first question is answered
            assert "restart same" in " ".join(told.out.split()), disk.failed
        if (folder / "new" / "results.json").exists():
            results.read(folder / "new" / "results.json")
        again = [*words[:2], "again", "--ask", "restart", *words[5:]]
        assert call(commands, folder, again, monkeypatch, "", -1)[0] == 0
        assert json.loads((folder / "answers.json").read_text())["answers"] == expected["answers"][:1]
        shutil.rmtree(folder)


@each_fault
@each_number
def test_a_training(fault: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes from what the last one left, and ends in the same bits."""
    monkeypatch.setenv("WORKSPACE_PATH", "")
    first = fake_workspace(tmp_path / "before", monkeypatch)
    first.run(max_steps=7, checkpoint_steps=3)

    def fresh(name: str) -> Workspace:
        shutil.copytree(first.folder, tmp_path / name)
        made = Workspace(tmp_path / name, first.dataset)
        made.runs = first.runs
        return made

    read = checkpoint.safe_open
    counted = Disk(tmp_path / "counted")
    monkeypatch.setattr(checkpoint, "safe_open", counted.of_path("open", read))
    workspace = fresh("counted")
    with counted.attached(monkeypatch):
        expected, reference, _ = workspace.run(resume="auto", checkpoint_steps=3)
    assert expected and len(counted.operations) > 100
    for number in numbers(len(counted.operations), fault, every):
        workspace = fresh(f"{number}")
        before = newest(workspace)
        monkeypatch.setattr("os.getpid", lambda number=number: number)  # each process has another one
        disk = Disk(workspace.folder, fault, number)
        monkeypatch.setattr(checkpoint, "safe_open", disk.of_path("open", read))
        with disk.attached(monkeypatch):
            try:
                workspace.run(resume="auto", checkpoint_steps=3)
            except Killed:
                pass
            except (OSError, ReproError) as error:
                said = explained(error) if isinstance(error, OSError) else str(error)
                assert "\n" not in said and f"{workspace.folder}/" in said, (disk.failed, said)
        monkeypatch.setattr(checkpoint, "safe_open", read)
        assert newest(workspace) >= before, disk.failed
        monkeypatch.setattr("os.getpid", lambda: 99999)
        result, folder, resumed = workspace.run(resume="auto", checkpoint_steps=3)
        assert (result, lines(folder)) == (expected, lines(reference)), disk.failed
        left = {path.name for path in (workspace.folder / "model" / "fake").iterdir()}
        unfinished = [name for name in left if name.startswith(".") and name != ".lock"]
        assert not unfinished or not resumed.batches, disk.failed  # the next checkpoint removes them
        assert left >= {path.name for path in checkpoint.paths(tmp_path / "counted" / "model" / "fake")}
        shutil.rmtree(workspace.folder)


def newest(workspace: Workspace) -> int:
    """The step of the last checkpoint."""
    newest = checkpoint.newest(workspace.folder / "model" / "fake")
    assert newest
    return newest.record.step


@each_fault
@pytest.mark.usefixtures("commands")
def test_the_observer(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program goes on, and what was not written down is no step that two runs can be the same by."""

    def observed(name: str, number: int) -> tuple[Disk, Recording]:
        recording = Recording(["train"], tmp_path / name)
        disk = Disk(recording.folder, fault, number)
        recorder = Recorder(str(recording.folder), 1)
        with disk.attached(monkeypatch), contextlib.suppress(Killed):
            recorder.mark_loaded()
            for step, hashes in straight().items():
                recorder.step(step, hashes)
            recorder.steps = 4
            recorder.end()
        return disk, recording

    counted, _ = observed("counted", -1)
    assert len(counted.operations) > 15
    for number in range(len(counted.operations)):
        disk, recording = observed(f"{number}", number)
        seen = recording.finish(0)
        assert record.read(recording.folder).steps == seen.steps
        said = capsys.readouterr().err
        if fault != KILL:
            assert seen.steps in (0, 4) or seen.content.unseen, disk.failed
            assert said.count("\n") == (seen.steps != 4 or bool(seen.content.unseen)), (disk.failed, said)
