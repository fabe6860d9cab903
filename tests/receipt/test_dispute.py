"""Two who each hold a record find the first step that differs, in as many messages as the tree has levels."""

import math
from pathlib import Path

import msgspec
import pytest

from repro.errors import ReproError, UsageError
from repro.files import write_json
from repro.receipt import dispute, merkle
from repro.receipt.dispute import Message, Opened
from repro.record import record
from repro.record.record import Record
from support.commands import repro, sha, straight, write

STEPS = 37


def of(path: Path, **changed: dict[int, str]) -> Record:
    """A record whose steps are those of straight(), up to a change from which on its weights are others."""
    return record.read(write(path, straight(STEPS, **changed)))


def settled(a: Record, b: Record) -> list[Message]:
    """All messages of a dispute."""
    messages, sides = [dispute.begin(a)], (b, a)
    while not isinstance(messages[-1].result, str):
        carried = msgspec.json.decode(msgspec.json.encode(messages[-1]), type=Message)
        messages.append(dispute.answer(sides[(len(messages) - 1) % 2], carried))
    return messages


@pytest.mark.parametrize("first", [1, 2, 16, 17, 32, 36, 37])
def test_the_first_step_that_differs_is_found(tmp_path: Path, first: int) -> None:
    after = {step: f"other {step}" for step in range(first, STEPS + 1)}
    messages = settled(of(tmp_path / "a"), of(tmp_path / "b", gradients={first: "other"}, weights=after))
    assert messages[-1].result == f"step {first} differs first, in the gradients: `w`"
    assert len(messages) <= math.ceil(math.log2(STEPS + 1)) + 2


def test_equal_records_have_nothing_to_dispute(tmp_path: Path) -> None:
    messages = settled(of(tmp_path / "a"), of(tmp_path / "b"))
    assert messages[-1].result == "the two records hold the same steps" and len(messages) == 2


def test_a_generator_that_decides_nothing_is_no_difference(tmp_path: Path) -> None:
    messages = settled(of(tmp_path / "a"), of(tmp_path / "b", generator={5: "other"}))
    assert messages[-1].result == "the two records hold the same steps"


def test_nobody_changes_his_mind(tmp_path: Path) -> None:
    a, b, c = (of(tmp_path / name, weights={at: "other"}) for name, at in (("a", 20), ("b", 21), ("c", 3)))
    first = dispute.begin(a)
    answered = dispute.answer(b, first)
    last = answered.opened[-1]
    other = dispute.Tree(merkle.leaves(c)).opened("B", last.covered)
    assert other.children != last.children
    with pytest.raises(ReproError, match="is not what was shown of them before"):
        dispute.answer(a, msgspec.structs.replace(answered, opened=[*answered.opened[:-1], other]))
    with pytest.raises(UsageError, match="is not the one that you have answered from"):
        dispute.answer(c, answered)


def test_a_step_that_was_made_up_is_refused(tmp_path: Path) -> None:
    messages = settled(of(tmp_path / "a"), of(tmp_path / "b", weights={20: "other"}))
    number = next(n for n, message in enumerate(messages) if message.steps)
    step = messages[number].steps[0]
    forged = msgspec.structs.replace(step, content=step.content.replace(sha(("gradients", 20)), sha("made up")))
    assert forged != step
    with pytest.raises(ReproError, match="is not the leaf that was shown before"):
        dispute.answer(
            record.read(tmp_path / "ba"[number % 2]), msgspec.structs.replace(messages[number], steps=[forged])
        )


def test_a_root_that_nobody_has_signed_is_refused(tmp_path: Path) -> None:
    a, b = of(tmp_path / "a"), of(tmp_path / "b", weights={20: "other"})
    first = dispute.begin(a)
    with pytest.raises(ReproError, match="not the one that the receipt has signed"):
        dispute.answer(b, first, signed=sha("other"))
    assert dispute.answer(b, first, signed=first.roots["A"]).by == "B"


def test_records_of_other_lengths_are_not_disputed(tmp_path: Path) -> None:
    shorter = record.read(write(tmp_path / "b", straight(STEPS - 1)))
    with pytest.raises(UsageError, match="the other record has 37 steps, and yours 36"):
        dispute.answer(shorter, dispute.begin(of(tmp_path / "a")))


@pytest.mark.parametrize("damage", ["[]", "{", '{"schema": 1, "by": "C", "leaves": 3, "roots": {}}', '{"schema": 2}'])
def test_a_message_that_cannot_be_believed_is_one_line(tmp_path: Path, damage: str) -> None:
    (tmp_path / "message.json").write_text(damage)
    with pytest.raises(ReproError, match="no message of a dispute"):
        dispute.read(tmp_path / "message.json")


def test_the_command(tmp_path: Path) -> None:
    of(tmp_path / "a"), of(tmp_path / "b", weights={20: "other"})
    done = repro("dispute", "a", "--to", "1.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "message in 1.json, for B to answer\n")
    for number in range(1, 10):
        side = "ba"[(number - 1) % 2]
        done = repro("dispute", side, f"{number}.json", "--to", f"{number + 1}.json", cwd=tmp_path)
        if done.returncode:
            break
    assert (done.returncode, done.stdout) == (3, "step 20 differs first, in the weights: `w`\n"), done.stderr
    again = repro("dispute", "a", "1.json", "--to", "1.json", cwd=tmp_path)
    assert again.returncode == 2 and "1.json already exists" in again.stderr
    write_json(tmp_path / "opened.json", msgspec.to_builtins(Opened(side="A", first=0, end=2, children=["0" * 64] * 2)))
    bad = repro("dispute", "a", "opened.json", "--to", "x.json", cwd=tmp_path)
    assert bad.returncode == 1 and bad.stderr.count("\n") == 1
