"""Levels: what reaches one, and what holds it back."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from repro.report.level_questions import HIGHEST, LEVELS
from repro.report.levels import Levels, levels
from repro.trainers.verify.questions import TRAINER_QUESTIONS
from repro.verify.audits import Audit
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.questions import AnswerWord
from repro.verify.results import Gpu, Machine, Results
from support.answered import ALL_SAME, OURS, SAME_BITS, answer, audit, machine, verified
from support.results_files import results as of_trainers
from support.results_files import sha256

WORDS: tuple[AnswerWord, ...] = ("same", "differs", "cannot tell", "not asked")


def level(*contents: Results, audits: Sequence[Audit] = ()) -> Levels:
    (one,) = levels(contents, audits)
    return one


def decided(one: Levels, number: int) -> tuple[str, list[str]]:
    row = one.rows[number - 1]
    return row.answer, row.decisive


# --- one results file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_out", range(1, 6))
def test_a_level_needs_all_its_questions_and_all_levels_below(left_out: int):
    for name in LEVELS[left_out - 1].of_command:
        for word in WORDS[1:]:
            if name in ALL_SAME:
                one = level(verified(ALL_SAME | {name: word}), audits=[audit()])
                assert (one.level, one.rows[left_out - 1].answer) == (left_out - 1, word)
                assert [row.reached for row in one.rows] == [n < left_out for n in range(1, 7)]
                assert all(row.answer == "same" for row in one.rows if row.number != left_out)


def test_all_levels_of_a_command():
    one = level(verified(ALL_SAME), audits=[audit()])
    assert (one.level, one.name, one.says) == (6, "audited by somebody else", "Level 6 of 6: audited by somebody else")
    assert level(verified(ALL_SAME)).says == (
        "Level 5 of 6: another machine or container. Not level 6, audited by somebody else (skipped: audit)"
    )


def test_what_was_not_asked_is_not_reached_though_what_is_above_is_same():
    asked: dict[str, AnswerWord] = {name: word for name, word in ALL_SAME.items() if name not in ("resume", "kill")}
    one = level(verified(asked))
    assert one.says == "Level 1 of 6: again. Not level 2, resumed and killed (skipped: resume, kill)"
    assert decided(one, 3) == ("same", ["threads", "cores"]) and decided(one, 4) == ("same", ["instruction_set"])
    assert not any(row.reached for row in one.rows[1:])


def test_no_level():
    assert level(verified({"restart": "differs", "kill": "same"})).name == "not reproducible"
    assert level(verified({"restart": "cannot tell"})).name == "not verified"
    assert level(verified({"threads": "same"})).name == "not verified"
    assert levels([verified({})]) == []


@pytest.mark.parametrize(
    ("question", "number"),
    [(name, one.number) for one in LEVELS for name in one.also if name in {q.name for q in COMMAND_QUESTIONS}]
    + [("workers", 3)],
)
def test_a_further_question_holds_back_where_it_differs_alone(question: str, number: int):
    for word in ("same", "cannot tell", "not asked"):
        assert level(verified(ALL_SAME | {question: word})).level == 5
    one = level(verified(ALL_SAME | {question: "differs"}))
    assert (one.level, *decided(one, number)) == (number - 1, "differs", [question])


def test_a_machine_with_a_gpu_needs_the_cpu_beside_it():
    with_gpu = structs.replace(machine(), gpu=[Gpu("H100")])
    words: tuple[AnswerWord, ...] = WORDS
    reached = [level(verified(ALL_SAME | {"gpu": word}, on=with_gpu)) for word in words]
    assert [(one.level, one.rows[3].answer) for one in reached] == list(zip((5, 3, 3, 3), words, strict=True))
    assert level(verified(ALL_SAME, on=with_gpu)).level == 3


def test_a_control_without_effect_reaches_nothing():
    def of(word: AnswerWord, name: str = "seed") -> Levels:
        return level(verified(ALL_SAME, others=[answer(name, word, control=True)]))

    assert of("differs").level == of("cannot tell").level == 5
    assert decided(of("same"), 1) == (
        "cannot tell",
        ["the control seed has no effect, so equal bits show nothing"],
    )
    assert of("same").level == of("same", "evaluation").level == 0 and of("same", "workers").level == 0
    assert of("differs", "workers").level == 2  # as it should, and the bits depend on it all the same


def test_an_answer_by_some_of_its_runs_is_inconclusive():
    some = verified(ALL_SAME)
    some.answers = [structs.replace(one, reason="4 threads: failed") for one in some.answers]
    assert [row.answer for row in level(some).rows] == ["cannot tell"] * 5 + ["not asked"]


GIVEN = [name for one in LEVELS for name in (*one.of_command, *one.also)]
"""With `machine` and `audit`, as `--vary` may name a question."""


@given(st.dictionaries(st.sampled_from(GIVEN), st.sampled_from(WORDS), min_size=1), st.booleans())
def test_a_level_never_exceeds_what_was_answered(answers: dict[str, AnswerWord], audited: bool):
    one = level(verified(answers), audits=[audit()] if audited else [])
    assert one.level == sum(row.reached for row in one.rows) <= HIGHEST
    for row, known in zip(one.rows, LEVELS, strict=True):
        names = {*known.of_command, *known.also} - {"machine", "audit"}
        own = {name: answers[name] for name in names if name in answers}
        if row.number <= one.level:
            assert row.reached and row.answer == "same" and "differs" not in own.values()
            needed = [own.get(name) for name in known.of_command]
            assert audited if row.number == 6 else "same" in needed if row.number == 5 else {*needed} == {"same"}
        else:
            assert not row.reached
        assert (row.answer == "differs") == ("differs" in own.values())


@pytest.mark.parametrize("name", ["machine", "audit"])
def test_a_question_of_vary_that_is_named_as_another_machine_or_an_audit_reaches_nothing(name: str):
    known = {"machine": 4, "audit": 5}[name]
    answers = {other: word for other, word in ALL_SAME.items() if name != "machine" or other != "container"}
    assert level(verified(answers, others=[answer(name, "same")])).level == known


# --- several ----------------------------------------------------------------------------------------------------------


def test_the_worse_answer_counts():
    def of(*words: AnswerWord) -> str:
        return (
            level(
                *(verified({"restart": word}, created=f"2026-11-2{n}T00:00:00+00:00") for n, word in enumerate(words))
            )
            .rows[0]
            .answer
        )

    assert of("same", "not asked") == of("not asked", "same") == of("same", "same") == "same"
    assert of("same", "cannot tell") == of("cannot tell", "same") == "cannot tell"
    assert of("same", "cannot tell", "differs") == "differs"


def test_only_one_training_is_put_together():
    first, *others = [verified({"restart": "same"}), verified({"resume": "same", "kill": "same"}, commit="bad")]
    assert sorted(one.level for one in levels([first, *others])) == [0, 1]
    others = [verified({"resume": "same", "kill": "same"}, fingerprint=sha256("x"))]
    assert sorted(one.level for one in levels([first, *others])) == [0, 1]
    unseen = [structs.replace(one, runs=verified({}, fingerprint=None).runs) for one in (first, *others)]
    assert sorted(one.level for one in levels(unseen)) == [0, 1]
    assert level(first, verified({"resume": "same", "kill": "same"})).level == 2


WITHOUT: dict[str, AnswerWord] = {name: word for name, word in ALL_SAME.items() if name != "container"}


def test_another_machine():
    ours = verified(WITHOUT)
    theirs: dict[str, AnswerWord] = {"restart": "same"}
    one = level(ours, verified(theirs, on=machine("B")))
    assert (one.level, *decided(one, 5)) == (5, "same", ["machine"])
    assert one.rows[4].asked[0].machine == "Imaginary 9000, 2 cores; B, 2 cores"
    both = levels([ours, verified(theirs, sha256("other"), machine("B"))])
    assert [(each.level, decided(each, 5)) for each in both] == [
        (4, ("differs", ["machine"])),
        (1, ("differs", ["machine"])),
    ]
    differs = level(verified(ALL_SAME), verified({"restart": "differs"}, on=machine("B")))
    assert differs.level == 0


@pytest.mark.parametrize(
    "again",
    [
        machine(usable=1),
        machine(platform="Linux-6.9-x86_64-with-glibc2.36"),
        structs.replace(machine(), name="renamed"),
    ],
)
def test_the_same_machine_after_an_update_is_no_other(again: Machine):
    assert level(verified(WITHOUT), verified({"restart": "same"}, on=again)).level == 4


def test_another_library_or_gpu_is_another_machine():
    for other in (machine(platform="Linux-6.1-x86_64-with-glibc2.28"), structs.replace(machine(), gpu=[Gpu("H100")])):
        assert level(verified(WITHOUT), verified({"restart": "same", "gpu": "same"}, on=other)).level == 5


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"verdict": "differs"}, "differs"),
        ({"verdict": "inconclusive"}, "cannot tell"),
        ({"auditor": OURS}, "not asked"),
        ({"auditor": None}, "not asked"),
        ({"signer": None}, "not asked"),
        ({"fingerprint": sha256("x")}, "not asked"),
        ({"fingerprint": None}, "not asked"),
    ],
)
def test_an_audit_that_reaches_nothing(changes: dict, word: AnswerWord):
    one = level(verified(ALL_SAME), audits=[audit(**changes)])
    assert (one.level, one.rows[5].answer) == (5, word)
    both = level(verified(ALL_SAME), audits=[audit(**changes), audit()])
    assert both.level == (5 if word == "differs" else 6)


def test_an_audit_needs_a_fingerprint():
    assert level(verified(ALL_SAME, fingerprint=None), audits=[audit(fingerprint=None)]).level == 5


# --- the reference trainers -------------------------------------------------------------------------------------------


def test_each_framework_and_arithmetic_has_its_level():
    content = of_trainers(broken=("portable", "jax", "restart_cpu"))
    content.answers += [
        structs.replace(one, question="resume_epoch") for one in content.answers if one.question == "resume_kill"
    ]
    reached = {(one.framework, one.numerics): one for one in levels([content])}
    assert {place: one.level for place, one in reached.items()} == {
        ("pytorch", "deterministic"): 2,
        ("tensorflow", "deterministic"): 2,
        ("jax", "deterministic"): 3,
        ("pytorch", "portable"): 3,
        ("tensorflow", "portable"): 3,
        ("jax", "portable"): 0,
    }
    assert decided(reached["pytorch", "deterministic"], 3) == ("differs", ["threads"])
    assert reached["pytorch", "portable"].frameworks == ["PyTorch 2.15.0"]


def test_every_question_of_a_level_is_one_that_can_be_asked():
    of_command = {question.name for question in COMMAND_QUESTIONS} | {"machine", "audit", "workers"}
    of_trainer = {question.name for question in TRAINER_QUESTIONS} | {"machine", "audit"}
    for one in LEVELS:
        assert {*one.of_command} <= of_command and {*one.of_trainer} <= of_trainer
        assert {*one.also} <= of_command | of_trainer
    assert [one.number for one in LEVELS] == [1, 2, 3, 4, 5, 6]


def test_what_it_holds_for():
    one = level(verified(ALL_SAME), verified(ALL_SAME, created="2026-11-29T00:00:00+00:00"))
    assert (one.date, one.commit, one.dirty) == ("2026-11-29T00:00:00+00:00", "c0ffee", False)
    assert (one.fingerprint, one.frameworks) == (SAME_BITS, ["PyTorch 2.15.0"])
    assert one.versions == {"python": "3.12.1", "torch": "2.15.0"}
