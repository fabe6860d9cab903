"""The record of a command is read with distrust: what is cut off, changed, of another version or a stranger's."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from repro.compare.comparison import compare
from repro.errors import ReproError, UsageError
from repro.observe.recorder import Recorder
from repro.record import lines, provenance, record
from repro.record.recording import Recording
from repro.record.typed_lines import About
from repro.trainers.verify import recorded
from support.commands import sha, straight, write

DATA = Path(__file__).parent / "data"


def test_a_whole_one(tmp_path: Path) -> None:
    recorded = record.read(write(tmp_path / "a", straight(3), outputs={"model.pt": sha("model")}))
    assert (recorded.steps, recorded.outputs) == (3, {"model.pt": sha("model")})
    assert recorded.processes[0].weights == {"w": sha(("weights", 3))}
    assert recorded.processes[0].about.frameworks == {"torch": "2"}


def test_the_fingerprint_is_of_weights_and_outputs_and_of_no_process_number(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, straight(3)) for name in "ab")
    (other / "steps" / "10.jsonl").rename(other / "steps" / "77.jsonl")
    prints = [record.fingerprint(lines.processes(path), {}) for path in (one, other)]
    assert prints[0] == prints[1]
    assert record.fingerprint(lines.processes(one), {"model.pt": sha(1)}) != prints[0]
    weights = write(tmp_path / "c", straight(3, weights={3: "other"}))
    assert record.fingerprint(lines.processes(weights), {}) != prints[0]
    assert record.fingerprint([], {}) is None


def test_the_fingerprint_does_not_depend_on_the_number_of_ranks(tmp_path: Path) -> None:
    one, two = write(tmp_path / "a", straight(3)), write(tmp_path / "b", straight(3), straight(3))
    prints = [record.fingerprint(lines.processes(path), {}) for path in (one, two)]
    assert prints[0] == prints[1]
    apart = write(tmp_path / "c", straight(3), straight(3, weights={3: "other"}))
    assert record.fingerprint(lines.processes(apart), {}) not in prints
    content = json.loads((two / record.FILE).read_text())
    older = record._of_processes(lines.processes(two), {})
    assert older != prints[1]
    (two / record.FILE).write_text(json.dumps(content | {"fingerprint": older}))
    assert record.read(two).content.fingerprint == older  # of a version that counted each rank


def test_ranks_keep_their_names_and_their_order(tmp_path: Path) -> None:
    recorded = record.read(write(tmp_path / "a", straight(2), straight(2)))
    assert [(process.label, process.rank) for process in recorded.processes] == [("rank-0", 0), ("rank-1", 1)]


def test_the_threads_are_not_those_of_a_launcher() -> None:
    launcher = lines.Process("9", About(threads=4))
    ranks = [lines.Process(f"rank-{rank}.1{rank}", About(threads=1), {1: {}}) for rank in range(2)]
    assert provenance.facts({}, [launcher, *ranks])["threads"] == 1
    assert provenance.facts({}, [launcher])["threads"] == 4


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A record as this version writes it, with a note between its steps."""
    recording = Recording(["true"], tmp_path / "sealed")
    observer = Recorder(str(recording.folder), 1)
    observer.step(0, {"weights": {"w": sha(0)}})
    for step in (1, 2, 3):
        observer.count()
        observer.step(step, {"weights": {"w": sha(step)}})
        observer.note(f"note {step}")
    recording.finish(0)
    return recording.folder


def lines_of(path: Path) -> tuple[Path, list[str]]:
    (file,) = (path / lines.STEPS).glob("*.jsonl")
    return file, file.read_text().splitlines(keepends=True)


def test_the_last_line_of_a_process_may_come_late(sealed: Path) -> None:
    """It says what observing took, at the end of a process that may outlive the command."""
    file, lines = lines_of(sealed)
    late = Recorder(str(sealed), 1)
    late.path, late.seal = str(file), json.loads(lines[-1])["seal"]
    late.write({"kind": "end", "seconds": 0.5})
    assert record.read(sealed).processes[0].observing == 0.5


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [*lines[:3], *lines[4:]], "line 4: it does not follow from the lines before it"),
        (lambda lines: [*lines[:4], lines[3], *lines[4:]], "line 5: it does not follow"),
        (lambda lines: [*lines[:3], lines[5], lines[4], lines[3], *lines[6:]], "line 4: it does not follow"),
        (lambda lines: [line.replace(sha(2), sha(7)) for line in lines], "line 5: it does not follow"),
        (lambda lines: [line.replace("note 1", "note I") for line in lines], "line 4: it does not follow"),
        (lambda lines: [*lines[:-1], '{"kind": "note", "text": "a"}\n'], "line 8: it does not follow"),
        (lambda lines: lines[:-1], "was changed: the last line of process"),
        (lambda lines: lines[:-2], "was cut off: 2 of 3 steps"),
        (lambda lines: [f"{line[:-78]}}}\n".replace(sha(2), sha(7)) for line in lines], "was changed: the last line"),
    ],
)
def test_lines_that_were_removed_doubled_or_altered(damage: Any, said: str, sealed: Path) -> None:
    file, lines = lines_of(sealed)
    assert len(lines) == 8
    file.write_text("".join(damage(lines)))
    with pytest.raises(ReproError) as refused:
        record.read(sealed)
    assert said in str(refused.value) and str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["optimizer", "watch", "compiled"])
def test_a_record_of_an_older_version_is_read(name: str) -> None:
    """Its lines have no seal."""
    recorded = record.read(DATA / name)
    assert recorded.steps == 3 and recorded.unseen == []
    assert recorded.content.fingerprint == record.fingerprint(recorded.processes, recorded.outputs)


def test_an_older_record_with_a_step_twice_loses_none_of_the_two(tmp_path: Path) -> None:
    shutil.copytree(DATA / "watch", tmp_path / "a")
    file, lines = lines_of(tmp_path / "a")
    other = lines[2].replace(json.loads(lines[2])["hashes"]["weights"]["watch.w"], sha("other"))
    file.write_text("".join([*lines[:2], other, *lines[2:]]))
    assert record.read(tmp_path / "a").processes[0].steps[2]["weights"].keys() == {"watch.w", "watch.w'"}


@pytest.mark.parametrize("step", [-5, 10**90, 1.5, True])
def test_a_step_that_no_run_has(step: object, tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    with open(path / "steps" / "10.jsonl", "a") as file:
        file.write(json.dumps({"kind": "step", "step": step, "hashes": {}}) + "\n")
    with pytest.raises(ReproError, match=r"10.jsonl, line 6: Expected `int`.*at `\$.step`; copy it again"):
        record.read(path)


def test_lines_that_could_not_be_written_are_missed(sealed: Path) -> None:
    file, _ = lines_of(sealed)
    file.with_name(f"{file.name}.broken").touch()
    (process,) = lines.processes(sealed)
    assert process.unseen == ["step 4: it could not be written down, nor could any after it"]
    file.with_name("1.jsonl.broken").touch()
    assert [one.unseen for one in lines.processes(sealed) if one.name == "1"] == [
        ["step 1: it could not be written down, nor could any after it"]
    ]


def test_a_last_line_that_was_being_written_counts_for_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    with open(path / "steps" / "10.jsonl", "a") as file:
        file.write('{"kind": "step", "st')
    assert record.read(path).steps == 3


def changed(path: Path, **content: object) -> Path:
    file = path / record.FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | content))
    return path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"schema": 2}, "has schema 2, this version reads 1; record the command again"),
        ({"schema": "\x1b[31m"}, "has schema '"),
        ({"exit_code": "0"}, "Expected `int`, got `str` - at `$.exit_code`"),
        ({"command": ["ok", 1]}, "Expected `str`, got `int` - at `$.command[1]`"),
        ({"outputs": {"a": "../../etc"}}, "at `$.outputs[...]`"),
        ({"outputs": {"a": sha("a")}}, "was changed: its fingerprint is not that of what it holds"),
        ({"processes": [{"name": "10", "rank": None, "steps": 9, "frameworks": {}}]}, "was cut off: 3 of 9 steps"),
        ({"processes": [{"name": "../../x", "rank": None, "steps": 1, "frameworks": {}}]}, "was cut off: 0 of 1 steps"),
    ],
)
def test_what_cannot_be_believed_is_one_printable_line(content: dict, said: str, tmp_path: Path) -> None:
    path = changed(write(tmp_path / "a", straight(3)), **content)
    with pytest.raises(ReproError) as refused:
        record.read(path)
    assert said in str(refused.value) and str(refused.value).isprintable()


@pytest.mark.parametrize("text", ["", "[1", "[" * 100_000, "3", '"x"', '{"a": 1}', "9" * 5000])
def test_a_record_that_is_none(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    (path / record.FILE).write_text(text)
    with pytest.raises(ReproError, match=r"is not JSON, or was cut off|is not a record of a command"):
        record.read(path)


@pytest.mark.parametrize(
    "line", ['{"kind": "step"}', '{"kind": "step", "step": 1, "hashes": {"weights": {"w": "\x1b"}}}', "[]", "{", "null"]
)
def test_a_line_that_is_none(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    with open(path / "steps" / "10.jsonl", "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ReproError, match=r"10.jsonl, line 6: .*; copy it again"):
        record.read(path)


def test_no_record_and_one_that_was_cut_off(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no record"):
        record.read(tmp_path)
    path = write(tmp_path / "a", straight(3))
    (path / record.FILE).unlink()
    with pytest.raises(ReproError, match="was cut off before its end"):
        record.read(path)


def test_steps_that_are_no_files_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    os.mkfifo(path / "steps" / "11.jsonl")
    (path / "steps" / "12.jsonl").symlink_to("/dev/zero")
    assert record.read(path).steps == 3


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "data").glob("schema-*")), ids=lambda path: path.name)
def test_a_record_of_each_schema(path: Path) -> None:
    """As the version that brought the schema wrote it: steps of PyTorch, arrays that are kept, and an output of an odd name."""
    recorded = record.read(path)
    assert recorded.steps == 3 and len(recorded.processes[0].of("gradients")) == 3
    assert len(recorded.outputs) == 2 and all(name.isprintable() for name in recorded.outputs)
    weights = recorded.arrays(recorded.processes[0], 3, "weights")
    assert {name: array.shape for name, array in weights.items()} == {"0.weight": (1, 2), "0.bias": (1,)}
    assert compare(path, path).found is None


def test_a_run_of_a_trainer_of_the_first_version() -> None:
    """Its trace alone; checkpoints are tested by themselves."""
    path = Path(__file__).parent / "data" / "trainer-run"
    difference = recorded.compare(path, path)
    assert difference.found is None and isinstance(difference.a, recorded.TrainerRun)
    assert [*difference.a.trace.losses] == [1, 2, 3, 4] and difference.a.content.fingerprint


def test_names_that_cannot_be_shown(tmp_path: Path) -> None:
    """As earlier versions wrote them: those of outputs, too."""
    steps = straight(1)
    steps[1]["weights"] = {"w\u00a0": sha(1), "w ": sha(2), "w\n": sha(3)}
    outputs = {"a\u00a0b": sha("a"), "a b": sha("b"), "a\udcffb": sha("c")}
    recorded = record.read(write(tmp_path / "a", steps, outputs=outputs))
    for hashes, values in ((recorded.processes[0].weights, (1, 2, 3)), (recorded.outputs, "abc")):
        assert sorted(hashes.values()) == sorted(map(sha, values)) and all(name.isprintable() for name in hashes)


def test_what_a_stranger_writes_is_made_printable(tmp_path: Path) -> None:
    steps = straight(1)
    steps[1]["weights"] = {"w\x1b]0;x\x07": sha(1)}
    path = write(tmp_path / "a", steps, command=["\x1b[2Jpython"])
    recorded = record.read(path)
    assert all(name.isprintable() for name in [*recorded.processes[0].weights, *recorded.content.command])
