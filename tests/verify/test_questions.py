"""What a question declares."""

import pytest

from repro.verify import questions
from repro.verify.command_questions import COMMAND_QUESTIONS


@pytest.mark.parametrize(
    ("widest", "labels"),
    [
        ("avx512f", ["AVX2", "SSE4"]),
        ("avx2", ["SSE4"]),
        ("avx", ["SSE4"]),
        ("sse4_2", []),
        ("asimd", []),
        (None, []),
    ],
)
def test_vector_instructions_are_limited_only_to_narrower_ones(
    widest: str | None, labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "_instruction_set", lambda: widest)
    (question,) = [question for question in COMMAND_QUESTIONS if question.name == "instruction_set"]
    assert [change.label for change in question.possible_changes] == labels
    assert (question.obstacle() is None) == bool(labels)


def test_only_the_answers_of_a_file_are_shown_in_other_words() -> None:
    words = {answer: questions.shown(answer) for answer in ("same", "differs", "cannot tell", "not asked")}
    assert words == {"same": "same", "differs": "differs", "cannot tell": "inconclusive", "not asked": "skipped"}
