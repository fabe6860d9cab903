"""Which faults are planted, and what is said of each."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from repro.compare.pairs import pairs
from repro.record import record
from repro.verify import checkpoint_copies, power
from repro.verify.planted import PlantedFault
from repro.verify.power import PLACE, Power
from repro.verify.questions import Change
from repro.verify.trial import Command, Trial
from support.commands import resumed, sha, straight, write

RESUMED = Change("stopped, resumed", course="stop", stops=(1 / 2,))
FIRST = {"rate": "1", "generator `numpy`": "1", "slots": "1", "average": "1"}
NOW = {"rate": "1", "generator `numpy`": "1", "slots": "2", "average": "2", "new": "1"}


def folder_of(trial: Path, name: str, digests: dict[str, str]) -> None:
    (trial / name).mkdir(parents=True)
    moments = {"step 0": {part: {"digest": digest} for part, digest in digests.items()}}
    (trial / name / "values.json").write_text(json.dumps(moments))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A run that was resumed after step 2 and is *same*."""
    folder_of(tmp_path / "trial", "first", FIRST)
    folder_of(tmp_path / "trial", "restored", NOW)
    (tmp_path / "trial" / "stopped").mkdir()
    rest = record.read(write(tmp_path / "trial" / "resumed", resumed(2)))
    return Trial(RESUMED, Command(["x"]), tmp_path / "trial", record=rest)


def measured(
    trial: Trial, results: dict[str, dict[str, Any]], planted: bool = True, outputs: dict[str, str] | None = None
) -> tuple[Power, list[str]]:
    """The power of a run whose planted runs have these hashes, by part ("" for that without a fault), and what was run."""
    made: list[str] = []
    folder = trial.folder.parent

    def run(changes: Sequence[Change]) -> Iterator[Trial]:
        for change in changes:
            assert change.fault is not None
            made.append(change.fault)
            rest = record.read(write(folder / f"fault {len(made)}", resumed(2, **results.get(change.fault, {}))))
            if planted:
                (rest.path / "steps" / power.PLANTED).touch()
            yield Trial(change, Command(["x"]), folder, record=rest, seconds=2.0)

    whole = record.read(write(folder / "whole", straight(), outputs=outputs))
    return power.measured(trial, whole, True, run), made


SEEN: dict[str, Any] = {"slots": {"gradients": {1: 7}, "weights": {1: 7}}, "average": {"weights": {2: 7}}}


def test_what_is_equal_to_the_first_is_not_planted_and_all_else_is(trial: Trial) -> None:
    result, made = measured(trial, SEEN)
    assert made == ["slots", "average", ""]
    assert str(result) == (
        "; 2 of 2 planted faults were seen (6 s); not planted: rate (equal to the first), "
        "generator `numpy` (never drawn from), new (the stopped run had no first value of it), "
        f"{PLACE} (no loader is seen that hands out samples by indices)"
    )
    assert [(fault.part, fault.step, fault.channel) for fault in result.of("seen")] == [
        ("slots", 3, "gradients"),
        ("average", 4, "weights"),
    ]


def test_a_fault_that_nothing_shows_is_said_plainly(trial: Trial) -> None:
    result, _ = measured(trial, {"slots": SEEN["slots"]})
    assert "1 of 2 planted faults were seen (6 s); NOT SEEN, so that *same* says nothing about it: average" in str(
        result
    )
    assert (result.as_result().planted, result.as_result().seen) == (2, 1)


def test_a_fault_without_an_effect_is_another_thing(trial: Trial) -> None:
    result, _ = measured(trial, {"slots": SEEN["slots"], "average": {"generator": {1: 7}}})
    assert "1 of 2 planted faults were seen (6 s); without effect on 2 steps that followed: average" in str(result)


def test_what_differs_without_the_fault_too_does_not_show_it(trial: Trial) -> None:
    trial.record = record.read(write(trial.folder / "other", resumed(2, generator={1: 7})))
    result, _ = measured(trial, {"slots": SEEN["slots"], "average": {"generator": {1: 7}}})
    assert [fault.part for fault in result.of("not seen")] == ["average"]


def test_a_copy_of_the_weights_that_only_one_run_shows_is_no_effect_of_a_fault(trial: Trial) -> None:
    """... as it may be Python's garbage."""
    steps = resumed(2)
    steps[1]["copies"] = {"OrderedDict.w": sha(1)}
    trial.record = record.read(write(trial.folder / "other", steps))
    result, _ = measured(trial, {"slots": SEEN["slots"]})
    assert [fault.part for fault in result.of("not seen")] == ["average"]


def test_what_was_not_put_back_shows_nothing(trial: Trial) -> None:
    result, _ = measured(trial, SEEN, planted=False)
    assert str(result).startswith("; no fault was planted: rate (equal to the first)")
    assert "slots, average (it could not be put back)" in str(result)


def test_faults_show_nothing_where_a_run_without_one_differs(trial: Trial) -> None:
    result, _ = measured(trial, {**SEEN, "": {"weights": {2: 7}}})
    assert str(result) == (
        "; no fault was planted: a run that goes on from a copy of the folder differs without one, too (step 4, weights)"
    )


def test_a_run_without_a_fault_is_stopped_before_it_writes_what_the_whole_run_wrote(trial: Trial) -> None:
    result, made = measured(trial, SEEN, outputs={"{run}/model.pt": sha("weights")})
    assert made[-1] == "" and result.void is None


def test_a_generator_of_the_program_that_changes_no_step_has_no_effect(trial: Trial) -> None:
    """As one that is made anew for each batch: no record has its state, so nothing else could show it."""
    for name in ("first", "restored"):
        (trial.folder / name / "values.json").unlink()
        (trial.folder / name).rmdir()
        folder_of(trial.folder, name, {f"{power.OWN} generator of NumPy": name})
    result, _ = measured(trial, {})
    assert [fault.part for fault in result.of("without effect")] == ["the program's generator of NumPy"]


def test_a_command_that_fails_with_a_fault_has_noticed_it(trial: Trial) -> None:
    planted = Trial(
        Change("x", fault="slots"), Command(["x"]), trial.folder, fails="it ended with exit code 1: KeyError"
    )
    why = "the command fails with it: it ended with exit code 1: KeyError"
    whole = record.read(write(trial.folder / "w", straight()))
    assert trial.record
    without = pairs(whole, trial.record, True)[0]
    assert power._outcome(planted, whole, without) == PlantedFault("slots", "not planted", why=why)


def test_a_generator_that_was_not_restored_is_not_said_to_be_undrawn(trial: Trial) -> None:
    for name in ("first", "restored"):
        (trial.folder / name / "values.json").unlink()
        (trial.folder / name).rmdir()
        folder_of(trial.folder, name, {"generator `python`": "1", "generator `numpy`": "1"})
    result, _ = measured(trial, {})
    whys = {fault.part: fault.why for fault in result.faults}  # the records of these tests draw from Python's
    assert (whys["generator `python`"], whys["generator `numpy`"]) == (power.EQUAL, power.UNDRAWN)


@pytest.mark.parametrize(
    ("own_folder", "marks", "said"),
    [
        (False, [], power.NO_FOLDER),
        (True, ["too-large"], power.TOO_LARGE_COPY),
        (True, ["first/several"], power.MANY_PROCESSES),
    ],
)
def test_where_nothing_can_be_planted_it_says_why(trial: Trial, own_folder: bool, marks: list[str], said: str) -> None:
    for name in marks:
        (trial.folder / name).touch()
    whole = record.read(write(trial.folder / "whole", straight()))
    assert str(power.measured(trial, whole, own_folder, lambda changes: iter(()))) == f"; no fault was planted: {said}"


def test_the_copy_of_a_folder_is_the_folder(tmp_path: Path) -> None:
    run, trial = tmp_path / "run", tmp_path / "trial"
    (run / "deep").mkdir(parents=True)
    (run / "deep" / "checkpoint").write_bytes(b"1")
    (run / "last").symlink_to("deep/checkpoint")
    trial.mkdir()
    checkpoint_copies.keep(run, trial)
    (run / "deep" / "checkpoint").write_bytes(b"2")
    checkpoint_copies.put_back(trial, tmp_path / "again")
    assert (tmp_path / "again" / "last").readlink() == Path("deep/checkpoint")
    assert (tmp_path / "again" / "deep" / "checkpoint").read_bytes() == b"1"
    checkpoint_copies.forget(trial)
    assert [*trial.iterdir()] == []


@pytest.mark.parametrize("text", ["", "[]", '{"step 0": 3}', '{"step 0": {"a": {}}}', '{"step 0": {"a": 1}}'])
def test_a_file_that_the_command_broke_has_no_parts(tmp_path: Path, text: str) -> None:
    (tmp_path / "values.json").write_text(text)
    assert checkpoint_copies.digests(tmp_path) == {}
