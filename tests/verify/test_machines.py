"""The question across machines.

Which runs of two results are compared, and what is said of the others.
"""

from itertools import product
from typing import Any

import pytest
from msgspec import UNSET

from repro.trainers.verify.recorded import deciding
from repro.verify import machines
from repro.verify.results import Answer, Results, Run
from support.results_files import FRAMEWORKS
from support.results_files import results as made

BASE = "deterministic/pytorch/as-configured"


def answered(*contents: Results) -> dict[tuple[str, str], tuple[Answer, list[Run]]]:
    """The answers by framework and numerics, for two machines, and their runs."""
    pairs = machines.answers(machines.distinct(list(contents)), deciding)
    return {(answer.framework, answer.numerics): (answer, runs) for answer, runs in pairs}


def answers(*contents: Results) -> dict[tuple[str, str], Answer]:
    return {place: answer for place, (answer, _) in answered(*contents).items()}


def later(content: Results) -> Results:
    content.created = "2026-11-22T00:00:00+00:00"
    return content


def test_machines_are_distinguished_by_what_they_say_of_themselves():
    newer = later(made(salt="newer"))
    known = machines.distinct([made(), made(model="B"), newer])
    assert [(machine.name, len(machine.results)) for machine in known] == [("A", 2), ("B", 1)]
    assert known[0].results[0] is newer
    assert machines.answers(machines.distinct([made(), newer]), deciding) == []
    assert [a.name for a in machines.distinct([made(model=str(i)) for i in range(28)])][25:] == ["Z", "27", "28"]


def test_other_bits():
    answers = answered(made(), made(model="B", salt="b"))
    assert set(answers) == set(product(FRAMEWORKS, ("deterministic", "portable")))
    for (_, numerics), (answer, runs) in answers.items():
        portable = numerics == "portable"
        assert (answer.answer, answer.promise, answer.kept) == (
            ("same", "same", True) if portable else ("differs", None, None)
        )
        assert answer.title == "Another machine: A and B"
        assert (answer.difference is None) == portable
        labels = [run.label for run in runs]
        assert labels[:2] == ["A: as configured", "B: as configured"] and len(labels) == 16
        assert answer.reason is None and answer.runs == labels


def test_one_run_that_differs_breaks_the_promise():
    result = answers(made(), made(model="B", broken=("portable", "jax", "workers")))
    assert result["jax", "portable"].kept is False
    assert result["jax", "portable"].says == "6 of 8 runs are the same on both"
    assert result["jax", "portable"].runs[0] == "A: 1 worker"
    assert result["pytorch", "portable"].kept is True


def changed(content: Results, task: str, **params: Any) -> Results:
    for run in content.runs.values():
        if run.task == task and run.experiment:
            run.experiment["config"]["params"] |= params
    return content


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"learning_rate": 0.5}, "params.learning_rate: 0.01 and 0.5"),
        ({"batch_size_train": 64}, "params.batch_size_train: 32 and 64"),
        ({"from_the_future": 1}, "params.from_the_future: None and 1"),
    ],
)
def test_other_configurations_are_not_compared(params: dict[str, Any], said: str):
    result = answers(made(), changed(made(model="B"), "jax", **params))
    for numerics in ("deterministic", "portable"):
        answer = result["jax", numerics]
        assert (answer.answer, answer.kept, answer.runs) == ("not asked", None, [])
        assert f"as configured: {said}" in str(answer.reason)
        assert result["pytorch", numerics].answer == "same"


def test_keys_that_decide_nothing_do_not_hinder():
    result = answers(made(), changed(made(model="B"), "jax", num_workers=3, log_interval=7, resume="auto"))
    assert result["jax", "deterministic"].answer == "same"
    result = answers(made(), changed(made(model="B"), "jax", threads=7))
    assert result["jax", "deterministic"].answer == "not asked"
    assert result["jax", "portable"].answer == "same"


def test_other_steps_are_not_compared_but_an_older_run_may_be():
    long = later(made(model="B", steps=200))
    assert "as configured: steps: 100 and 200" in str(answers(made(), long)["jax", "portable"].reason)
    assert answers(made(), long, made(model="B"))["jax", "portable"].answer == "same"


def test_runs_that_are_missing_or_failed():
    lacking = made("portable", model="B")
    failed = lacking.runs["portable/jax/as-configured"]
    failed.status, failed.error, failed.fingerprint = "failed", "out of memory", None
    result = answers(made(), lacking)
    assert result["jax", "deterministic"].reason == "the two machines have no run in common"
    assert "as configured: failed on B (out of memory)" in str(result["jax", "portable"].reason)
    assert result["jax", "portable"].says == "7 of 7 runs are the same on both"


def test_a_run_in_other_arithmetic_is_no_run_of_its_block():
    """`verify` asks for fast runs in every block, and promises nothing of them."""
    a, b = made(), made(model="B")
    b.runs["portable/jax/again"].fingerprint = "sha256:" + "0" * 64
    assert answers(a, b)["jax", "portable"].kept is False
    for content in (a, b):
        run = content.runs["portable/jax/again"]
        assert run.experiment
        run.experiment["config"]["params"]["numerics"] = "fast"
    assert answers(a, b)["jax", "portable"].kept is True


def test_where_two_machines_diverge():
    b = made(model="B")
    run = b.runs[BASE]
    assert run.experiment
    run.fingerprint = "sha256:" + "0" * 64
    run.losses[4] *= 2
    run.experiment["framework"]["version"] = "2.14.0"
    difference = answers(made(), b)["pytorch", "deterministic"].difference
    assert difference and difference.channel is UNSET
    assert (difference.step, difference.last_equal_step) == (50, 40)
    assert [row.step for row in difference.growth] == [40, 50, 60, 70, 80, 90, 100]
    assert [row.relative for row in difference.growth[:3]] == [0.0, 1.0, 0.0]
    (cause,) = difference.causes
    assert (cause.fact, cause.a, cause.b) == ("framework.version", "2.15.0", "2.14.0")


@pytest.mark.parametrize(
    ("facts", "bits", "expected"),
    [
        ([{"precision": "high"}] * 2, "aa", ("same", "same", True)),
        ([{"precision": "high"}] * 2, "ab", ("differs", "same", False)),
        ([{"precision": "high"}, None], "ab", ("differs", None, None)),
    ],
)
def test_a_command_with_portable_numerics_promises_the_same(facts: list[Any], bits: str, expected: tuple[object, ...]):
    contents = []
    for model, fact, bit in zip("AB", facts, bits, strict=True):
        content = made(model=model)
        content.runs = {
            "command/as-it-stands": Run(
                task="command",
                numerics="repro portable -- python train.py",
                label="as it stands",
                command="repro portable -- python train.py",
                status="done",
                steps=3,
                seconds=1.0,
                fingerprint=f"sha256:{bit * 64}",
                experiment={"facts": {"versions": {}, "scripts": {"train.py": "0"}, "portable_numerics": fact}},
            )
        }
        contents.append(content)
    (answer,) = answers(*contents).values()
    assert (answer.answer, answer.promise, answer.kept) == expected
