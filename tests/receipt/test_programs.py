"""Audits in portable numerics: loops of three frameworks are the same, and a cheat is found down to its operation."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from receipt.conftest import Maker
from support.commands import repro
from support.forging import edit
from support.observed import interpreter
from support.runs import PROGRAMS as OURS
from support.runs import ROOT

pytestmark = pytest.mark.deep
AUDITS = ROOT / "evidence" / "audits"
PROGRAMS = {"pytorch_loop": ("pytorch", "*.pt"), "flax_orbax": ("jax", "*"), "keras_fit": ("tensorflow", "*.keras")}


def recorded(maker: Maker, name: str, *words: str, program: str) -> Path:
    framework, pattern = PROGRAMS[program]
    python = str(interpreter(framework))
    command = ["--to", name, "--portable", *words, "--", python, f"{program}.py", "--out", "{run}"]
    done = repro("record", "--checkpoints", f"{{run}}/{pattern}", *command, cwd=maker.folder)
    assert done.returncode == 0 and "24 steps observed" in done.stderr, done.stderr
    return maker.folder / name


def audited(maker: Maker, record: Path, program: str, *words: str) -> tuple[int, str]:
    python = str(interpreter(PROGRAMS[program][0]))
    command = ["--", python, f"{program}.py", "--out", "{run}", "--resume"]
    done = repro("audit", str(record / "receipt.json"), str(record), "--trust", *words, *command, cwd=maker.folder)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    for program in PROGRAMS:
        shutil.copy(AUDITS / f"{program}.py", tmp_path)
    return Maker(tmp_path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_training_is_the_same_in_every_segment(maker: Maker, program: str) -> None:
    record = recorded(maker, "record", program=program)
    maker.sign(record)
    code, said = audited(maker, record, program, "--segments", "all")
    assert code == 0, said
    assert re.findall(r"^steps (\d+) to (\d+), .*: same: 6 steps, the next checkpoint", said, re.MULTILINE) == [
        ("1", "6"),
        ("7", "12"),
        ("13", "18"),
        ("19", "24"),
    ], said


def test_a_cheat_is_found_down_to_its_operation(maker: Maker) -> None:
    """The maker trains with another program, and gives the record the hash of the one that he publishes."""
    path = maker.folder / "pytorch_loop.py"
    honest = path.read_text()
    altered = honest.replace(
        "functional.cross_entropy(model(image), label)",
        "(functional.cross_entropy(model(image), label) * (1.001 if step == 15 else 1))",
    )
    assert altered != honest
    path.write_text(altered)
    record = recorded(maker, "record", "--keep", program="pytorch_loop")
    traced = recorded(maker, "traced", "--operations", "16", program="pytorch_loop")
    path.write_text(honest)
    digest = hashlib.sha256(honest.encode()).hexdigest()
    edit(record, lambda content: content["facts"].update(scripts={"pytorch_loop.py": digest}))
    maker.sign(record)
    code, said = audited(maker, record, "pytorch_loop", "--segments", "all", "--to", "audit")
    assert code == 3, said
    assert re.findall(r"^steps \d+ to (\d+), [^:]*: (\w+)", said, re.MULTILINE) == [
        ("6", "same"),
        ("12", "same"),
        ("18", "differs"),
        ("24", "same"),
    ]
    assert "at step 16, in the gradients (`0." in said and re.search(
        r"^    by      `0\..* of [0-9]+ elements", said, re.MULTILINE
    ), said
    verdict = json.loads((maker.folder / "audit" / "audit.json").read_text())
    assert verdict["verdict"] == "differs" and verdict["segments"][2] == {"first": 13, "last": 18, "verdict": "differs"}
    ours = maker.folder / "audit" / "13-18-step-16" / "record"
    compared = repro("compare", str(traced), str(ours), cwd=maker.folder)
    assert compared.returncode == 3 and "  begins  from operation" in compared.stdout, compared.stdout
    assert "aten.mul.Tensor in A" in compared.stdout


def test_two_ranks(tmp_path: Path) -> None:
    """Both are compared: what one of them did otherwise is found at its step. Other ranks than the maker's prove nothing."""
    honest = (OURS / "audited_ranks.py").read_text()
    altered = honest.replace("(2 * step + rank) * BATCH", "(2 * step + rank * (step != 5)) * BATCH")
    assert altered != honest
    maker, script = Maker(tmp_path), tmp_path / "train.py"
    torchrun = [str(interpreter("pytorch")), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    words = ["train.py", "--out", "{run}"]
    for name, text in (("honest", honest), ("cheat", altered)):
        script.write_text(text)
        command = ["record", "--to", name, "--portable", "--checkpoints", "{run}/*.pt", "--", *torchrun, "2", *words]
        done = repro(*command, cwd=tmp_path)
        assert done.returncode == 0 and "8 steps of 2 processes observed" in done.stderr, done.stderr
    script.write_text(honest)
    digest = hashlib.sha256(honest.encode()).hexdigest()
    edit(tmp_path / "cheat", lambda content: content["facts"]["scripts"].update({"train.py": digest}))
    said = {}
    for name, ranks in (("honest", "2"), ("honest", "1"), ("cheat", "2")):
        receipt = tmp_path / name / "receipt.json"
        if not receipt.exists():
            maker.sign(tmp_path / name)
        audit = ["audit", str(receipt), name, "--trust", "--segments", "all", "--to", f"audit-{name}-{ranks}"]
        done = repro(*audit, "--", *torchrun, ranks, *words, "--resume", cwd=tmp_path)
        lines = re.findall(r"^steps \d+ to \d+, [^:]*: (.*) \(", done.stdout, re.MULTILINE)
        said[name, ranks] = (done.returncode, *lines)
    assert said["honest", "2"][:2] == (0, "same: 4 steps, the next checkpoint"), said
    assert said["honest", "2"][2].startswith("same: 4 steps, the next checkpoint"), said
    assert said["honest", "1"][2] == "inconclusive: ranks that took steps: 1, recorded: 2; audit with as many", said
    code, first, second = said["cheat", "2"]
    assert code == 3 and first.startswith("same") and second.startswith("differs: at step 6, in the batch"), said
