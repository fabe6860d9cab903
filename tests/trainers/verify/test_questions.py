"""What the questions about commands and about the trainers declare, in the same terms."""

from dataclasses import MISSING, fields
from typing import Any

import pytest

from repro.trainers.verify.questions import TRAINER_QUESTIONS
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.questions import Change, Question

OF_TRAINERS = {"label", "environment", "course", "overrides", "runtime", "framework"}
"""What a run of a trainer carries out of a change."""
OF_TRAINERS_ALONE = {"overrides", "framework"}
OF_COMMANDS_ALONE = {"obstacle", "needs", "meaning", "sameness"}
"""What only the answers about a command take from a question."""


def declared(thing: Any) -> set[str]:
    """The fields that are not as they would be by themselves."""
    return {field.name for field in fields(thing) if getattr(thing, field.name) != default(field)}


def default(field: Any) -> object:
    return None if field.default is MISSING else field.default


@pytest.mark.parametrize("question", TRAINER_QUESTIONS, ids=lambda question: question.name)
def test_a_trainer_is_asked_nothing_that_its_runs_do_not_carry_out(question: Question) -> None:
    assert not declared(question) & OF_COMMANDS_ALONE
    for change in (question.base, *question.changes):
        assert declared(change) <= OF_TRAINERS
        assert change.course != "stop" and change.runtime != "image"


@pytest.mark.parametrize("question", COMMAND_QUESTIONS, ids=lambda question: question.name)
def test_a_command_is_asked_nothing_that_its_runs_do_not_carry_out(question: Question) -> None:
    assert question.evidence == "record"
    for change in question.changes:
        assert not declared(change) & OF_TRAINERS_ALONE
        assert change.course in ("straight", "kill", "stop", "alone") and change.runtime in ("host", "image")


def test_what_is_declared_is_what_is_not_so_by_itself() -> None:
    assert declared(Change("c", cores=1)) == {"label", "cores"}
