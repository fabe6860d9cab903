"""Verdicts on resuming where two baseline runs differ, by the stopped run's own steps."""

from pathlib import Path

import pytest

from repro.compare.difference import Difference, first_difference
from repro.record import record
from repro.verify import judgment, vary
from repro.verify.command import JUDGMENTS, OwnCommand
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.decision import Decision
from repro.verify.judgment import record_of
from repro.verify.questions import BASELINE, Change
from repro.verify.resumption import OwnSteps, Resumed
from repro.verify.trial import Command, Trial
from support.commands import Steps, resumed, sha, straight, write

(KILL,) = (question for question in COMMAND_QUESTIONS if question.name == "kill")


def judged(
    folder: Path, stopped: Steps, rest: Steps, channel: str = "gradients", decided: bool = False
) -> tuple[str, str]:
    """`same`, `differs` or `cannot tell` of a run that was stopped and resumed, and why; the baseline has other bits."""
    baseline = Trial(
        BASELINE, Command(["x"]), folder, record=record.read(write(folder / "a", straight(8, weights={1: 1})))
    )
    trial = Trial(Change("killed, resumed"), Command(["x"]), folder)
    trial.parts = [record.read(write(folder / "record", stopped))]
    trial.record = record.read(write(folder / "resumed", rest))
    own = OwnSteps(KILL, baseline, baseline, divergence=Difference(1, channel, ["w"]), decided=decided)
    obstacle = own.obstacle(trial)
    if obstacle:
        return "cannot tell", obstacle
    difference = own.difference(trial)
    return ("differs", own.meaning(trial, difference)) if difference else ("same", own.sameness([trial]))


def test_the_same_steps_as_the_stopped_run_took_itself(tmp_path: Path) -> None:
    assert judged(tmp_path, straight(6), resumed(4, 8)) == (
        "same",
        "went on after step 4; 2 steps after it that the stopped run took, too, equal in both; "
        "two baseline runs differ, so later ones say nothing; not covered: a second resume; not seen: where epochs begin",
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"generator": {1: sha(("generator", 1))}, "weights": {1: 7}}, "is that of step 1 of the stopped run"),
        ({"generator": {1: 7}, "weights": {1: 7}}, "a state that the stopped run never had"),
        (
            {"batch": {1: 7}, "weights": {1: 7}},
            "the place in the data, or the number of the epoch, was not restored (a guess)",
        ),
    ],
)
def test_what_is_not_restored_differs(changed: dict[str, dict[int, object]], said: str, tmp_path: Path) -> None:
    answer, why = judged(tmp_path, straight(6), resumed(4, 8, **changed))
    assert answer == "differs" and said in why


def test_weights_of_no_step_of_the_stopped_run(tmp_path: Path) -> None:
    answer, why = judged(tmp_path, straight(6), resumed(4, 8, initial_weights={0: 7}))
    assert answer == "differs" and "match no step of the stopped run" in why


@pytest.mark.parametrize("held", ["", "another"])
def test_an_optimizer_that_starts_from_another_state(held: str, tmp_path: Path) -> None:
    rest = resumed(4, 8, weights={1: 7})
    rest[0]["optimizer"] = {"w.momentum": sha(held)} if held else {}
    answer, why = judged(tmp_path, straight(6), rest)
    assert answer == "differs" and why.startswith("before its first step the optimizer of the resumed run holds")
    assert ("nothing of what that of the stopped run held after step 4" in why) == (not held)


def test_results_that_chance_may_decide_are_inconclusive(tmp_path: Path) -> None:
    rest = resumed(4, 8, gradients={1: 7}, weights={1: 7})
    rest[0]["optimizer"] = {"w.momentum": sha(("optimizer", 4))}
    assert judged(tmp_path, straight(6), rest) == (
        "cannot tell",
        "two baseline runs differ, and what is restored is equal as far as it is seen: weights, the optimizer's state, generators, "
        "the first batch; gradients of step 5 may differ by chance",
    )


@pytest.mark.parametrize(
    ("changed", "channel", "decided", "answer"),
    [
        ({"gradients": {1: 7}}, "generator", True, "differs"),
        ({"gradients": {1: 7}}, "generator", False, "cannot tell"),
        ({"batch": {1: 7}, "weights": {1: 7}}, "batch", False, "cannot tell"),
        ({"batch": {1: 7}, "weights": {1: 7}}, "generator", False, "differs"),
        ({"batch": {2: 7}, "weights": {2: 7}}, "generator", False, "cannot tell"),
    ],
)
def test_what_two_baseline_runs_differ_in_may_be_chance_after_resuming_too(
    changed: dict[str, dict[int, object]], channel: str, decided: bool, answer: str, tmp_path: Path
) -> None:
    assert judged(tmp_path, straight(6), resumed(4, 8, **changed), channel, decided)[0] == answer


def test_a_run_that_was_stopped_right_after_its_checkpoint(tmp_path: Path) -> None:
    assert "no step that both took" in judged(tmp_path, straight(4), resumed(4, 8))[1]


@pytest.mark.parametrize("other", [{}, {"gradients": {2: 7}, "weights": {2: 7}}], ids=["as the baseline", "by chance"])
def test_a_run_that_differs_before_it_is_stopped_says_nothing_of_resuming(
    other: dict[str, dict[int, object]], tmp_path: Path
) -> None:
    """Two baseline runs were the same by luck: the checkpoint would be blamed for what chance does."""
    baseline = Trial(BASELINE, Command(["x"]), tmp_path, record=record.read(write(tmp_path / "a", straight(8))))
    trial = Trial(Change("killed, resumed"), Command(["x"]), tmp_path)
    trial.parts = [record.read(write(tmp_path / "record", straight(6, **other)))]
    trial.record = record.read(write(tmp_path / "resumed", resumed(4, 8)))
    said = Resumed(KILL, baseline, baseline).obstacle(trial)
    assert (said is not None) == bool(other)
    assert not other or (said and "differs from the baseline before that (step 2, gradients)" in said)


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ({"gradients": {2: 7}, "weights": {2: 7}}, None),
        ({}, "differ from each other"),
        ({"weights": {2: 8}}, "differ from each other"),
    ],
    ids=["the same", "as the baseline", "another result"],
)
def test_a_change_that_makes_a_difference_is_made_twice(
    again: dict[str, dict[int, object]], said: str | None, tmp_path: Path
) -> None:
    """The first run was ended at its first difference, the second one goes on to the end."""
    question = next(one for one in COMMAND_QUESTIONS if one.name == "environment")
    own, command = OwnCommand(Command(["x"]), ["environment"], tmp_path), Command(["x"])

    def trial(name: str, steps: Steps) -> Trial:
        return Trial(question.changes[0], command, tmp_path, record=record.read(write(tmp_path / name, steps)))

    baseline, changed = trial("a", straight(4)), trial("b", straight(2, gradients={2: 7}, weights={2: 7}))
    changed.divergence = first_difference(record_of(baseline), record_of(changed), False)
    assert changed.divergence
    repeat = trial("c", straight(4, **again))
    decision = Decision(own, lambda name: repeat)
    why = decision._tested(judgment.StepJudgment(question, baseline, baseline), changed, changed.divergence)
    assert (why is None) if said is None else (why is not None and said in why)


@pytest.mark.parametrize(("rate", "answer"), [("0.1", "differs"), ("0.05", "cannot tell")])
def test_a_learning_rate_is_restored_whatever_chance_does_to_the_gradients(
    rate: str, answer: str, tmp_path: Path
) -> None:
    stopped, rest = straight(6), resumed(4, 8, gradients={1: 7}, weights={1: 7})
    for number, steps in ((4, rest), (0, stopped)):
        for step, hashes in steps.items():
            hashes["scalars"] = {"0.group 0.lr": "0.1" if step + number < 5 else "0.05"} if step else {}
    rest[1]["scalars"] = {"0.group 0.lr": rate}
    result, why = judged(tmp_path, stopped, rest)
    assert result == answer
    assert ("learning rates and schedules; gradients of step 5 may differ by chance" in why) == (rate == "0.05")


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        ("threads", 0, "1 thread: only the number of threads was changed; all 4 steps are the same: what differs may "),
        ("threads", 2, "1 thread: only the number of threads was changed: sums are split among threads"),
        ("hash_seed", 0, "decides; sort the set; all 4 steps are the same"),
        ("varied", 0, "--log=2: only this option was changed; all 4 steps are the same: what differs may hold "),
        ("seed", 0, "another seed, as it should"),
    ],
)
def test_a_file_that_differs_alone_is_not_explained_by_sums(name: str, step: int, said: str, tmp_path: Path) -> None:
    """A file may hold the number of threads, or the command's options, and all steps be the same."""
    questions = [*COMMAND_QUESTIONS, *vary.questions(["varied=--log={}:2,3"], [])]
    question = next(one for one in questions if one.name == name)
    trials = []
    for number in (1, 2):
        steps = straight(4, **({"weights": {step: number}} if step else {}))
        own = record.read(write(tmp_path / str(number), steps, outputs={"{run}/options": sha(number)}))
        trials.append(Trial(question.changes[0], Command(["x"]), tmp_path, record=own, hashes=own.outputs))
    baseline, trial = trials
    judge = JUDGMENTS[question.compared](question, baseline, baseline)
    difference = judge.difference(trial)
    assert difference and said in judge.meaning(trial, difference)
    guessed = judge.meaning(trial, difference).endswith("(a guess)")
    assert guessed == (name in ("threads", "varied") and not step)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"changed weights": True}, "changed; weights are equal after step 1, and differ when step 2 begins (`w`)"),
        ({"weights": True}, "changed"),
    ],
    ids=["proven", "guessed"],
)
def test_an_option_that_changes_something_says_what_the_hashes_prove(
    changed: dict[str, bool], said: str, tmp_path: Path
) -> None:
    (question,) = vary.questions(["evaluation=--eval-every={}:2,3"], [])
    trials = []
    for number in (1, 2):
        steps = straight(4, gradients={2: number}, weights={2: number})
        if "changed weights" in changed:
            for step in range(1, 5):
                steps[step]["changed weights"] = {"w": sha(7)} if (number, step) == (2, 2) else {}
        own = record.read(write(tmp_path / str(number), steps))
        trials.append(Trial(question.changes[0], Command(["x"]), tmp_path, record=own))
    baseline, trial = trials
    judge = JUDGMENTS[question.compared](question, baseline, baseline)
    difference = judge.difference(trial)
    assert difference
    why = judge.meaning(trial, difference)
    assert said in why
    assert why.endswith("only this option was changed") == (said == "changed")
