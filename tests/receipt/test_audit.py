"""`repro audit`: what it needs, what it asks before it runs a stranger's program, and what it leaves."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from receipt.conftest import TRAINING, Maker
from repro.record.signature import place
from repro.verify import audits
from support.commands import repro
from support.forging import edit

COMMAND = [sys.executable, TRAINING, "--out", "{run}", "--resume"]
OWN = ["record/receipt.json", "record"]


@pytest.fixture
def signed(maker: Maker) -> Maker:
    maker.sign(maker.folder / "record", "--data", TRAINING)
    return maker


def test_what_it_leaves(signed: Maker) -> None:
    """The file names the segments and both keys; in the folder of the code nothing stays."""
    before = sorted(signed.folder.iterdir())
    words = ["--seed", "1", "--segments", "2", "--key", str(signed.key("auditor")), "--to", "audit"]
    done = repro("audit", *OWN, *words, "--", *COMMAND, cwd=signed.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "drew 2 of 4 segments with --seed 1" in done.stdout
    assert "whoever altered 1 segment stays unseen with a chance of 0.5" in done.stdout
    audit = audits.read(signed.folder / "audit" / "audit.json")
    assert audit.verdict == "same" and audit.by_another
    assert [segment.last - segment.first for segment in audit.segments] == [2, 2]
    left = {path.name for path in signed.folder.iterdir()} - {path.name for path in before}
    assert left == {"audit", "auditor", "auditor.pub"}


def test_two_audits_of_one_seed_draw_the_same(signed: Maker) -> None:
    said = [
        repro(
            "audit", *OWN, "--seed", seed, "--segments", "1", "--to", f"{number}", "--", *COMMAND, cwd=signed.folder
        ).stdout
        for number, seed in enumerate(("5", "5", "2"))
    ]
    drawn = [[line.split(",")[0] for line in text.splitlines() if line.startswith("steps")] for text in said]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_strangers_program_is_not_run_unasked(signed: Maker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Another user's key did not sign the record: what would be run is shown, and nothing is."""
    elsewhere = str(tmp_path_factory.mktemp("home"))
    done = repro("audit", *OWN, "--", *COMMAND, cwd=signed.folder, XDG_DATA_HOME=elsewhere)
    assert place() != Path(elsewhere)
    assert done.returncode == 2 and "nothing was run" in done.stderr and "--trust" in done.stderr
    assert f"will run in {signed.folder}" in done.stderr and TRAINING in done.stderr
    assert not (signed.folder / "repro-records").exists()
    trusted = repro("audit", *OWN, "--trust", "--to", "a", "--", *COMMAND, cwd=signed.folder, XDG_DATA_HOME=elsewhere)
    assert trusted.returncode == 0, trusted.stdout + trusted.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "a receipt and the folder of its record must be given, not 0 paths"),
        (OWN, "no command that resumes"),
        ([*OWN, "--segments", "0", "--", *COMMAND], "--segments '0': must be 1 or more, or all"),
        ([*OWN, "--segments", "some", "--", *COMMAND], "--segments 'some'"),
        (["missing.json", "record", "--", *COMMAND], "missing.json does not exist"),
        ([OWN[0], "missing", "--", *COMMAND], "missing holds no record"),
        ([*OWN, "--to", "record", "--", *COMMAND], "record already exists and is not empty"),
        ([*OWN, "--start", "'", "--", *COMMAND], '--start "\'"'),
        ([*OWN, "--signer", TRAINING, "--", *COMMAND], "holds no public key"),
    ],
)
def test_what_is_wrong_is_one_line(signed: Maker, words: list[str], why: str) -> None:
    done = repro("audit", *words, cwd=signed.folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and why in done.stderr, done.stderr
    assert not (signed.folder / "repro-records").exists()


def test_other_data_are_refused(signed: Maker) -> None:
    data = signed.folder / "data.bin"
    data.write_bytes(b"1")
    signed.sign(signed.folder / "record", "--data", "data.bin", "--to", "record/with-data.json")
    data.write_bytes(b"2")
    done = repro("audit", "record/with-data.json", "record", "--", *COMMAND, cwd=signed.folder)
    assert done.returncode == 1 and "data.bin is not the file that the training read" in done.stderr


def test_a_command_that_fails_is_inconclusive(signed: Maker) -> None:
    words = [sys.executable, "-c", "raise SystemExit('no such checkpoint')"]
    done = repro(
        "audit", *OWN, "--segments", "all", "--start", "false", "--to", "audit", "--", *words, cwd=signed.folder
    )
    assert done.returncode == 4 and "inconclusive: the command ended with code 1: no such checkpoint" in done.stdout
    assert audits.read(signed.folder / "audit" / "audit.json").verdict == "inconclusive"


def test_a_checkpoint_in_the_folder_of_the_code_is_put_there_and_taken_away(maker: Maker) -> None:
    """Without {run}, the command reads and writes where its maker's did."""
    words = ["record", "--to", "plain", "--checkpoints", "out/checkpoint.npz", "--"]
    (maker.folder / "out").mkdir()
    assert repro(*words, sys.executable, TRAINING, "--out", "out", cwd=maker.folder).returncode == 0
    maker.sign(maker.folder / "plain")
    command = ["--segments", "all", "--to", "audit", "--", sys.executable, TRAINING, "--out", "out", "--resume"]
    there = repro("audit", "plain/receipt.json", "plain", *command, cwd=maker.folder)
    assert there.returncode == 2 and "already exists, where a file of the training is to be put" in there.stderr
    shutil.rmtree(maker.folder / "out")
    code = "import os, runpy; os.mkdir('out'); runpy.run_path(sys.argv[0], run_name='__main__')"
    words = [sys.executable, "-c", f"import sys; sys.argv = sys.argv[1:]; {code}", TRAINING, "--out", "out"]
    start = shlex.join(words)
    done = repro("audit", "plain/receipt.json", "plain", "--start", start, *command, cwd=maker.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_record_of_a_strange_checkpoint_is_refused(maker: Maker) -> None:
    def follow(content: dict) -> None:
        for change in content["checkpoints"]:
            change["files"] = dict.fromkeys(["../../evil.npz"], *change["files"].values())

    edit(maker.folder / "record", follow)
    maker.sign(maker.folder / "record")
    done = repro("audit", *OWN, "--trust", "--segments", "all", "--", *COMMAND, cwd=maker.folder)
    assert done.returncode == 2 and "lies neither in {run} nor" in done.stderr
    assert not (maker.folder / "repro-records").exists()
