"""Options of a command as questions."""

import pytest

from repro.errors import UsageError
from repro.verify import vary
from repro.verify.vary import with_option


@pytest.mark.parametrize(
    ("option", "words", "expected"),
    [
        ("--seed={}", ["a"], ["a", "--seed=9"]),
        ("--seed={}", ["a", "--seed=1", "b"], ["a", "--seed=9", "b"]),
        ("--seed={}", ["a", "--seed=1", "--seed=2"], ["a", "--seed=1", "--seed=9"]),
        ("--seed={}", ["a", "--seed", "1", "b"], ["a", "--seed=9", "b"]),
        ("--seed={}", ["a", "--seed", "--b"], ["a", "--seed=9", "--b"]),
        ("--seed {}", ["a", "--seed", "1", "b"], ["a", "--seed", "9", "b"]),
        ("--seed {}", ["a", "--seed=1", "b"], ["a", "--seed", "9", "b"]),
        ("--seed={}", ["a", "--seeded=1"], ["a", "--seeded=1", "--seed=9"]),
        ("--betas {} 1", ["a", "--betas", "2", "3", "b"], ["a", "--betas", "9", "1", "b"]),
        ("-j{}", ["a", "-j4"], ["a", "-j9"]),
        ("-j{}", ["a", "-j", "4"], ["a", "-j9"]),
        ("seed={}", ["a", "seed=1"], ["a", "seed=9"]),
        ("{}", ["a", "9"], ["a", "9", "9"]),
    ],
)
def test_another_value_takes_the_place_of_the_one_that_is_there(
    option: str, words: list[str], expected: list[str]
) -> None:
    assert with_option(words, option, "9") == expected


def test_a_question_is_read_from_one_text() -> None:
    one, other = vary.questions(["a=--x={}:1,a:b", "b_1=--y {} --z:-1,1:differs"], ["threads"])
    assert [change.option for change in one.changes] == [("--x={}", "1"), ("--x={}", "a:b")]
    assert [change.label for change in other.changes] == ["b_1 1: --y -1 --z", "b_1 2: --y 1 --z"]
    assert (one.promised("deterministic"), other.promised("deterministic")) == ("same", "differs")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["x"], "--vary 'x': must be NAME=OPTION{}:VALUE,VALUE, as in 'workers=--num-workers={}:0,4'"),
        (["a=--b={}"], "must be NAME=OPTION{}:VALUE,VALUE"),
        (["a=--b:1,2"], "must be NAME=OPTION{}:VALUE,VALUE"),
        (["=--b={}:1"], "must be NAME=OPTION{}:VALUE,VALUE"),
        (["a b=--x={}:1"], "the name 'a b' must be of letters, digits, - and _"),
        (["threads=--x={}:1"], "there is a question threads already; give it another name"),
        (["a=--x={}:1", "a=--y={}:1"], "there is a question a already; give it another name"),
        (["a=--x={}:1,,2"], "its values '1,,2' must be different, with commas between them"),
        (["a=--x={}:1,1:same"], "its values '1,1' must be different, with commas between them"),
        (["a=--x={}:"], "its values '' must be different, with commas between them"),
        (["a=--x='{}:1"], 'the option "--x=\'{}": No closing quotation'),
    ],
)
def test_what_says_no_question_is_one_line(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        vary.questions(texts, ["threads"])
    assert said in str(error.value) and str(error.value).startswith("verify: --vary ")
