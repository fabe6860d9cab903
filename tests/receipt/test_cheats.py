"""Twelve cheats of the maker of a record: each is refused, or found in the segment that it is in."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from receipt.conftest import TRAINING, Maker, train
from support.commands import repro
from support.forging import Line, edit, replace_checkpoint, rewrite

AUDIT = ["--trust", "--segments", "all", "--"]
COMMAND = [sys.executable, TRAINING, "--out", "{run}", "--resume"]


def audit(maker: Maker, receipt: Path, record: Path) -> tuple[int, str]:
    """The exit code of an audit of all segments, and what it says."""
    done = repro(
        "audit", str(receipt), str(record), "--signer", f"{maker.key()}.pub", *AUDIT, *COMMAND, cwd=maker.folder
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def verdicts(said: str) -> dict[int, str]:
    """The verdict of each segment, by its last step; native numerics leave `inconclusive` for what differs."""
    lines = re.findall(r"^steps \d+ to (\d+), [^:]*: (?:same|inconclusive|differs): (.*) \(", said, re.MULTILINE)
    return {int(last): "same" if "differ" not in text and "no step" not in text else text for last, text in lines}


def test_an_honest_training_is_the_same(maker: Maker) -> None:
    code, said = audit(maker, maker.sign(maker.folder / "record"), maker.folder / "record")
    assert code == 0, said
    assert verdicts(said) == {3: "same", 6: "same", 9: "same", 12: "same"}


# --- before anything is run: refused ------------------------------------------------------------------------------------


def swapped_checkpoint(folder: Path) -> None:
    copies = sorted((folder / "checkpoints").glob("*-*"))
    shutil.copy(copies[0], copies[1])


def forged_seal(folder: Path) -> None:
    def change(lines: list[Line]) -> list[Line]:
        lines[5]["hashes"]["weights"] = dict.fromkeys(lines[5]["hashes"]["weights"], "0" * 64)
        return lines

    rewrite(folder, change)


def cut_chain(folder: Path) -> None:
    rewrite(folder, lambda lines: [line for line in lines if line.get("step") != 12])


def other_versions(folder: Path) -> None:
    edit(folder, lambda content: content["facts"]["versions"].update(python="3.11.1"))


def other_script(folder: Path) -> None:
    path = folder.parent / TRAINING
    path.write_text(path.read_text().replace("0.01", "0.02"))


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a swapped checkpoint": (swapped_checkpoint, "the checkpoint .* is not the one that was signed"),
    "a forged seal": (forged_seal, "a step is not the one that was signed"),
    "a truncated chain": (cut_chain, "a step is not the one that was signed"),
    "altered versions": (other_versions, "record.json is not the one that was signed"),
    "another script": (other_script, f"{TRAINING} is not the file that the receipt names"),
}


@pytest.mark.parametrize("cheat", REFUSED)
def test_what_was_changed_after_it_was_signed_is_refused(maker: Maker, cheat: str) -> None:
    record = maker.folder / "record"
    receipt = maker.sign(record)
    forge, why = REFUSED[cheat]
    forge(record)
    code, said = audit(maker, receipt, record)
    assert code == 1 and re.search(why, said), said


@pytest.mark.parametrize("which", ["added", "instead"])
def test_a_second_signature_is_refused(maker: Maker, which: str) -> None:
    record = maker.folder / "record"
    receipt = maker.sign(record)
    other = maker.folder / "other.json"
    done = repro("receipt", str(record), "--key", str(maker.key("thief")), "--to", str(other), cwd=maker.folder)
    assert done.returncode == 0
    envelope, stolen = (json.loads(path.read_text()) for path in (receipt, other))
    envelope["signatures"] = [*(envelope["signatures"] if which == "added" else []), *stolen["signatures"]]
    receipt.write_text(json.dumps(envelope))
    code, said = audit(maker, receipt, record)
    assert code == 1 and ("has 2 signatures" if which == "added" else "does not name") in said


def test_an_altered_statement_is_refused(maker: Maker) -> None:
    receipt = maker.sign(maker.folder / "record")
    envelope = json.loads(receipt.read_text())
    middle = len(envelope["payload"]) // 2
    envelope["payload"] = f"{envelope['payload'][:middle]}AAAA{envelope['payload'][middle + 4 :]}"
    receipt.write_text(json.dumps(envelope))
    code, said = audit(maker, receipt, maker.folder / "record")
    assert code == 1 and "its signature is not that of its content" in said


# --- signed as it is: found where it is drawn ----------------------------------------------------------------------------

HIDDEN = {
    "one step with other data": ("data@8", {9: "at step 8"}),
    "another learning rate": ("rate@8", {9: "at step 8", 12: "at step 10"}),
    "a skipped step": ("skip@8", {9: "at step 8"}),
    "edited weights": ("end", {12: "all steps are equal, but"}),
}


@pytest.mark.parametrize("cheat", HIDDEN)
def test_what_was_trained_otherwise_is_found(maker: Maker, cheat: str) -> None:
    planted, wanted = HIDDEN[cheat]
    record = train(maker.folder, "cheat", CHEAT=planted)
    code, said = audit(maker, maker.sign(record), record)
    assert code == 4
    for last, text in verdicts(said).items():
        assert wanted.get(last, "same") in text, said


def replayed(folder: Path) -> None:
    def change(lines: list[Line]) -> list[Line]:
        steps = {line["step"]: line for line in lines if line["kind"] == "step"}
        for step in (7, 8, 9):
            steps[step]["hashes"] = steps[step - 3]["hashes"]
        return lines

    rewrite(folder, change)
    copies = sorted((folder / "checkpoints").glob("*-*"))
    replace_checkpoint(folder, 9, copies[1].read_bytes())


def of_another_run(folder: Path) -> None:
    other = train(folder.parent, "other", CHEAT="rate@1")
    replace_checkpoint(folder, 6, sorted((other / "checkpoints").glob("*-*"))[1].read_bytes())


FOUND: dict[str, tuple[Callable[[Path], None], dict[int, str]]] = {
    "replayed segments": (replayed, {6: "at step 7", 9: "at step 7", 12: "at step 7"}),
    "a checkpoint of another run": (of_another_run, {6: "all steps are equal, but", 9: "at step 7"}),
}


@pytest.mark.parametrize("cheat", FOUND)
def test_what_was_altered_before_it_was_signed_is_found(maker: Maker, cheat: str) -> None:
    record = maker.folder / "record"
    forge, wanted = FOUND[cheat]
    forge(record)
    code, said = audit(maker, maker.sign(record), record)
    assert code == 4
    for last, text in verdicts(said).items():
        assert wanted.get(last, "same") in text, said
