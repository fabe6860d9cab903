"""docs/cases.py: the declarations of the cases, what an answer counts as, and a few cases asked about."""

import importlib.util
import sys
from pathlib import Path

import pytest

from repro.commands.verify import QUESTIONS
from support.runs import ROOT


def load():
    spec = importlib.util.spec_from_file_location("docs_cases", ROOT / "docs" / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


CASES = load()
ACCUMULATION = CASES.cases(["accumulation"])[0]


def test_every_case_says_what_is_true_of_it() -> None:
    cases = CASES.cases([])
    assert len(cases) > 60
    for case in cases:
        varied = case.vary.partition("=")[0]
        assert set(case.answers) <= {*QUESTIONS, varied}, case.name
        assert set(case.answers.values()) <= {"same", "differs"}, case.name
        assert case.source, case.name
        differs = "differs" in case.answers.values()
        assert bool(case.cause) == differs, case.name


@pytest.mark.parametrize(
    ("why", "outcome"),
    [
        ("2 backward passes, in the whole run 4", "true"),
        ("backward passes, or dropout (a guess)", "among guesses"),
        ("dropout (a guess)", "missing"),
        ("the optimizer was not restored", "untrue"),
        (None, "missing"),
    ],
)
def test_a_cause_is_true_only_if_it_is_said_as_certain(why: str | None, outcome: str) -> None:
    answers = {"restart": {"answer": "same"}, "kill": {"answer": "differs", "why": why}}
    assert CASES.outcome(ACCUMULATION, CASES.Result("accumulation", answers)) == outcome


def test_a_question_that_verify_does_not_have_is_not_asked() -> None:
    result = CASES.Result("accumulation", {"restart": {"answer": "same"}})
    assert CASES.answered(ACCUMULATION, result) == {"restart": "same", "kill": "not asked"}


def test_a_case_that_was_not_asked_about_keeps_its_row() -> None:
    kept = "| `average_counter` | a | b | kill: same **(wrong)** | c | untrue |"
    page = f"head\n{kept}\n| `accumulation` | old | row | x | y | missing |\n| `gone` | a | b | c | d | true |\n"
    answers = {"restart": {"answer": "same"}, "kill": {"answer": "differs", "why": "2 backward passes | 4"}}
    first, *_, mine, other = CASES.table({"accumulation": CASES.Result("accumulation", answers)}, page).splitlines()
    assert first == "2 cases: 1 right verdicts; of the causes 1 true, 0 among guesses, 0 missing, 1 untrue."
    assert mine.endswith("| restart: same, kill: differs | 2 backward passes \\| 4 | true |")
    assert other == kept


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accumulation", "schedule_not_restored", "scaler_not_saved", "jax_momentum"])
def test_the_true_cause_is_named(name: str, tmp_path: Path) -> None:
    case = CASES.cases([name])[0]
    result = CASES.ask(case, "")
    assert CASES.answered(case, result) == case.answers
    assert CASES.outcome(case, result) == "true"
