"""The record of a command is read with distrust: what is cut off, changed, of another version or a stranger's."""

import json
import os
from pathlib import Path

import pytest

from repro.errors import ReproError, UsageError
from repro.record import provenance, record
from support.commands import sha, straight, write


def test_a_whole_one(tmp_path: Path) -> None:
    found = record.read(write(tmp_path / "a", straight(3), outputs={"model.pt": sha("model")}))
    assert (found.steps, found.outputs) == (3, {"model.pt": sha("model")})
    assert found.processes[0].weights == {"w": sha(("weights", 3))}
    assert found.processes[0].about.frameworks == {"torch": "2"}


def test_the_fingerprint_is_of_weights_and_outputs_and_of_no_process_number(tmp_path: Path) -> None:
    one, other = (write(tmp_path / name, straight(3)) for name in "ab")
    (other / "steps" / "10.jsonl").rename(other / "steps" / "77.jsonl")
    prints = [record.fingerprint(record.processes(path), {}) for path in (one, other)]
    assert prints[0] == prints[1]
    assert record.fingerprint(record.processes(one), {"model.pt": sha(1)}) != prints[0]
    weights = write(tmp_path / "c", straight(3, weights={3: "other"}))
    assert record.fingerprint(record.processes(weights), {}) != prints[0]
    assert record.fingerprint([], {}) is None


def test_ranks_keep_their_names_and_their_order(tmp_path: Path) -> None:
    found = record.read(write(tmp_path / "a", straight(2), straight(2)))
    assert [(process.label, process.rank) for process in found.processes] == [("rank-0", 0), ("rank-1", 1)]


def test_the_threads_are_not_those_of_a_launcher() -> None:
    launcher = record.Process("9", record.About(threads=4))
    ranks = [record.Process(f"rank-{rank}.1{rank}", record.About(threads=1), {1: {}}) for rank in range(2)]
    assert provenance.facts({}, [launcher, *ranks])["threads"] == 1
    assert provenance.facts({}, [launcher])["threads"] == 4


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
    with pytest.raises(ReproError, match=r"is not JSON, or was cut off|is no record of a command"):
        record.read(path)


@pytest.mark.parametrize(
    "line", ['{"kind": "step"}', '{"kind": "step", "step": 1, "hashes": {"weights": {"w": "\x1b"}}}', "[]", "{", "null"]
)
def test_a_line_that_is_none(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", straight(3))
    with open(path / "steps" / "10.jsonl", "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ReproError, match=r"10.jsonl, line 6: .*; copy it anew"):
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


def test_names_that_cannot_be_shown(tmp_path: Path) -> None:
    """As earlier versions wrote them: those of outputs, too."""
    steps = straight(1)
    steps[1]["weights"] = {"w\u00a0": sha(1), "w ": sha(2), "w\n": sha(3)}
    outputs = {"a\u00a0b": sha("a"), "a b": sha("b"), "a\udcffb": sha("c")}
    found = record.read(write(tmp_path / "a", steps, outputs=outputs))
    for hashes, values in ((found.processes[0].weights, (1, 2, 3)), (found.outputs, "abc")):
        assert sorted(hashes.values()) == sorted(map(sha, values)) and all(name.isprintable() for name in hashes)


def test_what_a_stranger_writes_is_made_printable(tmp_path: Path) -> None:
    steps = straight(1)
    steps[1]["weights"] = {"w\x1b]0;x\x07": sha(1)}
    path = write(tmp_path / "a", steps, command=["\x1b[2Jpython"])
    found = record.read(path)
    assert all(name.isprintable() for name in [*found.processes[0].weights, *found.content.command])
