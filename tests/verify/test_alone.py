"""One training of several beside the one that a command does alone: what an earlier one has left."""

import os
from pathlib import Path
from typing import Any

import pytest

from repro.record import record
from repro.record.metric_values import Metric
from repro.record.record import Record
from repro.verify.alone import NO_STEP, SEVERAL, Alone
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.questions import BASELINE, Change
from repro.verify.trial import Command, Trial
from support.commands import Steps, sha, write

(ALONE,) = (question for question in COMMAND_QUESTIONS if question.name == "alone")
COUNT = 3
NAMES = {"gradients": "0.w", "optimizer": "0.momentum", "weights": "0.w"}


def training(number: int = 0, moment: object = 0, **changed: Any) -> Steps:
    """A training of some steps whose optimizer has this number; `changed` by channel, `_` for a space, and by step."""
    names = {channel: name.replace("0", str(number), 1) for channel, name in NAMES.items()}
    steps: Steps = {0: {"initial weights": {f"{number}.w": sha(("weights", 0))}}}
    for step in range(1, COUNT + 1):
        steps[step] = {channel: {name: sha((channel, step))} for channel, name in names.items()}
        steps[step] |= {
            "batch": {"0.0": sha(("batch", step))},
            "generator": {"torch": sha((moment, step)), "idle": sha(0)},
        }
        steps[step] |= {"changed weights": {}, "scalars": {f"{number}.group 0.lr": "0.1"}}
    for channel, values in changed.items():
        for step, value in values.items():
            hashes = steps[step][channel.replace("_", " ")]
            hashes.update(dict.fromkeys(hashes, value))
    return steps


def sweep(*trainings: Steps) -> Steps:
    """One after another in one process."""
    result = {**trainings[0]}
    for one in trainings[1:]:
        place = max(result)
        result |= {place + step: hashes for step, hashes in one.items() if step}
        result[place + 1] = result[place + 1] | {"initial weights": one[0]["initial weights"]}
    return result


def judged(folder: Path, whole: Steps, alone: Steps, number: int | None = None) -> str:
    """The answer about a training of a command, in words."""
    command = Command(["x"], alone=["y"], trial=number)
    baseline = Trial(BASELINE, command, folder, record=record.read(write(folder / "a", whole)))
    trial = Trial(Change("alone", course="alone"), command, folder, record=record.read(write(folder / "b", alone)))
    own = Alone(ALONE, baseline, baseline)
    obstacle = own.obstacle(trial)
    if obstacle:
        return obstacle
    difference = own.difference(trial)
    assert trial.fingerprint is None  # that of another training
    if difference is None:
        return own.sameness([trial])
    assert [*own.records(trial)][1].steps == COUNT
    return own.meaning(trial, difference)


def test_each_training_of_a_sweep(tmp_path: Path) -> None:
    whole = sweep(training(weights={COUNT: sha(7)}), training(1), training(2, gradients={1: sha(7)}))
    for number, expected in [
        (None, "training 2 of the command differs from the one alone: a setting of the process"),
        (0, "training 0 of the command differs from the one alone: a setting of the process"),
        (1, "training 1 of 3, steps 4 to 6 of the command, is the one alone"),
        (3, "--trial 3: 3 trainings of the command, counted from 0, can be told apart"),
    ]:
        assert judged(tmp_path / str(number), whole, training(), number).startswith(expected)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (training(1, "later", initial_weights={0: sha(7)}), "`torch` differs at its first step: what ran before in the process drew from it;"),
        (training(1, "later", batch={1: sha(7)}, weights={1: sha(7)}), "`torch` differs at its first step: what ran before"),
        (training(1, "later", weights={1: sha(7)}), "`torch` differs at its first step, though the weights and the batch are the same"),
        (training(1, batch={2: sha(7)}, weights={2: sha(7)}), "the generators are the same and the batch is not"),
        (training(1, initial_weights={0: sha(("weights", COUNT))}), "it starts from the weights that training 0 ended with"),
        (training(1, initial_weights={0: sha(7)}), "what an earlier training left decides"),
        (training(1, scalars={2: "0.05"}, weights={2: sha(7)}), "`group 0.lr` is 0.05, alone 0.1: an earlier training changed a setting"),
        (training(1, optimizer={1: sha(7)}), "a setting of the process"),
        ({step: hashes for step, hashes in training(1).items() if step < COUNT}, "it takes 2 steps, alone 3; all that both took are the same"),
    ],
)  # fmt: skip
def test_what_an_earlier_training_has_left(second: Steps, said: str, tmp_path: Path) -> None:
    told = judged(tmp_path, sweep(training(), second), training())
    assert said in told and told.startswith("training 1 of the command differs from the one alone: ")


def test_one_optimizer_for_all_trainings(tmp_path: Path) -> None:
    """Where nothing is new, the number of steps parts them; what each begins with are the weights before."""
    one, two = training(), training(optimizer={1: sha(7)})
    whole = one | {COUNT + step: hashes for step, hashes in two.items() if step}
    said = judged(tmp_path, whole, training())
    assert said.startswith(
        "training 1 of the command differs from the one alone: it starts from the weights that training 0 ended"
    )


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    assert judged(tmp_path / "1", training(), {0: training()[0]}) == NO_STEP
    command = Command(["x"], alone=["y"])
    trial = Trial(Change("alone", course="alone"), command, tmp_path)
    trial.record = record.read(write(tmp_path / "2", training(), training()))
    for number, process in enumerate(trial.record.processes):
        process.name = str(number)  # no ranks
    baseline = Trial(BASELINE, command, tmp_path, record=record.read(write(tmp_path / "3", training())))
    assert Alone(ALONE, baseline, baseline).obstacle(trial) == SEVERAL


def written(folder: Path, one: Record, **files: tuple[int, str]) -> None:
    """Files of a run, each after a step: `model_3` is model-3.pt with this text."""
    process = one.processes[0]
    for step, line in process.lines.items():
        line.time = 1000.0 + 10 * step
    (folder / "run").mkdir(parents=True)
    for name, (step, text) in files.items():
        path = folder / "run" / f"{name.replace('_', '-')}.pt"
        path.write_text(text)
        os.utime(path, (1005.0 + 10 * step,) * 2)
        one.outputs[f"{{run}}/{path.name}"] = sha(text)


def compared(folder: Path, number: int | None, whole: Record, alone: Record) -> str:
    """The answer about a training whose steps are the same."""
    command = Command(["x"], alone=["y"], trial=number)
    baseline = Trial(BASELINE, command, folder / "a", record=whole)
    trial = Trial(Change("alone", course="alone"), command, folder / "b", record=alone)
    own = Alone(ALONE, baseline, baseline)
    assert own.obstacle(trial) is None
    difference = own.difference(trial)
    return own.sameness([trial]) if difference is None else own.meaning(trial, difference)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Record, Record]:
    """A command of three equal trainings, and one alone."""
    whole = sweep(training(), training(1), training(2))
    return record.read(write(tmp_path / "1", whole)), record.read(write(tmp_path / "2", training()))


def test_outputs_of_the_one_training_are_compared(both: tuple[Record, Record], tmp_path: Path) -> None:
    """Those that it wrote last, under names that numbers tell apart."""
    whole, alone = both
    written(
        tmp_path / "a", whole, model_0=(3, "0"), model_1=(6, "1"), model_2=(9, "2"), best=(9, "2"), start_2=(6, "x")
    )
    written(tmp_path / "b", alone, model=(3, "1"), best=(3, "1"), start=(0, "y"))
    said = compared(tmp_path, 1, whole, alone)
    assert said.endswith(
        "is the one alone; outputs: 1; not told from other trainings: `{run}/best.pt`, `{run}/start.pt`"
    )
    (tmp_path / "b" / "run" / "model.pt").write_text("other")
    alone.outputs["{run}/model.pt"] = sha("other")
    os.utime(tmp_path / "b" / "run" / "model.pt", (1035.0,) * 2)
    assert "all 3 steps are the same, but `{run}/model.pt` differs" in compared(tmp_path, 1, whole, alone)


def test_metrics_of_the_one_training_are_compared(both: tuple[Record, Record], tmp_path: Path) -> None:
    """Those of which each training has as many; of others is said that they cannot be told."""
    whole, alone = both
    values = [Metric(source="stdout", name="loss", at=f"epoch {n % 2 + 1}", value=f"0.{n}") for n in range(6)]
    best = Metric(source="stdout", name="best accuracy", at="", value="0.9")
    whole.metrics, alone.metrics = [*values, best], [*values[2:4], best]
    said = compared(tmp_path, 1, whole, alone)
    assert said.endswith("is the one alone; metrics: 1 (2 values); not told from other trainings: `best accuracy`")
    alone.metrics[1] = Metric(source="stdout", name="loss", at="epoch 2", value="0.7")
    assert "all 3 steps are the same, but `loss` (stdout) at epoch 2: 0.3 and 0.7" in compared(
        tmp_path, 1, whole, alone
    )
    uneven = record.read(
        write(tmp_path / "3", sweep(training(), training(1), {n: training(2)[n] for n in range(COUNT)}))
    )
    uneven.metrics = values
    assert compared(tmp_path, 1, uneven, alone).endswith("not told from other trainings: `loss`, `best accuracy`")


def test_of_several_ranks_the_first_is_compared(tmp_path: Path) -> None:
    """In the command as alone; what the others differ in is not said."""
    whole = record.read(write(tmp_path / "1", sweep(training(), training(1)), sweep(training(), training(1))))
    alone = record.read(write(tmp_path / "2", training(), training(weights={1: sha(7)})))
    assert compared(tmp_path, 1, whole, alone).endswith(
        "steps 4 to 6 of the command, is the one alone; of rank 0 alone"
    )
