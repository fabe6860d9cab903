"""`--portable` of `record` and `verify`: what a record holds, what is promised, what is run again."""

import json
import re
import sys
from pathlib import Path

import pytest

from repro.record.injection import Portable
from repro.structs import Flaw
from support.observed import interpreter
from support.portable import STUB, Done, ended, started
from support.portable import tree as tree
from support.runs import PROGRAMS, ROOT

TRAINING = str(STUB / "training.py")


def repro(tree: Path, folder: Path, *words: str) -> Done:
    return ended(started(tree, *words, path=str(tree), cwd=folder))


def test_compare_names_portable_numerics(tree: Path, tmp_path: Path) -> None:
    train = ("--", sys.executable, TRAINING)
    assert repro(tree, tmp_path, "record", "--to=a", *train).returncode == 0
    done = repro(tree, tmp_path, "record", "--to=b", "--portable", "--allow=svd", "--precision=highest", *train)
    first, last = done.stderr.splitlines()
    assert first == "repro portable: 4 operations of 1 kind (PyTorch 2.15.0)"
    assert last.startswith("repro: 4 steps observed")
    facts = [json.loads((tmp_path / name / "record.json").read_text())["facts"] for name in ("a", "b")]
    assert [one["portable_numerics"] for one in facts] == [None, {"precision": "highest", "allow": "svd"}]
    command = [sys.executable, "-c", "from repro.__main__ import command; command()", "record", "--to=c", *train]
    done = repro(tree, tmp_path, "portable", "--allow=svd", "--precision=highest", "--", *command)
    assert done.stderr.splitlines()[-1] == first
    assert repro(tree, tmp_path, "compare", "b", "c").returncode == 0
    assert (
        json.loads((tmp_path / "c" / "record.json").read_text())["facts"]["portable_numerics"]
        == facts[1]["portable_numerics"]
    )
    done = repro(tree, tmp_path, "compare", "a", "b")
    assert done.returncode == 3 and "why     portable numerics are in only one of the two (a guess)" in done.stdout
    assert "portable_numerics.precision: None and highest (portable numerics use a different arithmetic" in done.stdout


def test_a_record_without_pytorch_is_not_of_portable_numerics(tree: Path, tmp_path: Path) -> None:
    done = repro(tree, tmp_path, "record", "--to=a", "--portable", "--", sys.executable, "-c", "")
    assert done.stderr.startswith(
        "repro portable: NOTHING WAS PORTABLE: no process imported PyTorch, TensorFlow or JAX\nrepro: "
    )
    assert json.loads((tmp_path / "a" / "record.json").read_text())["facts"]["portable_numerics"] is None


@pytest.mark.parametrize(
    ("options", "words", "code", "promised", "answer"),
    [
        (["--portable"], [], 0, "same", "same"),
        (["--portable"], ["x"], 3, "same", "differs"),
        ([], ["x"], 0, None, "differs"),
    ],
)
def test_threads_are_promised_to_be_the_same(
    options: list[str], words: list[str], code: int, promised: str | None, answer: str, tree: Path, tmp_path: Path
) -> None:
    ask = ("--ask", "restart,observed,threads", "--json=j", "--to=v", *options)
    done = repro(tree, tmp_path, "verify", *ask, "--", sys.executable, TRAINING, *words)
    assert done.returncode == code, done.stderr
    content = {one["question"]: one for one in json.loads((tmp_path / "j").read_text())["answers"]}
    assert (content["threads"]["promised"], content["threads"]["answer"]) == (promised, answer)
    assert content["restart"]["answer"] == content["observed"]["answer"] == "same"  # portable without the observer, too
    assert ("portable numerics cover PyTorch's operations alone" in content["threads"]["why"]) == (code == 3)
    assert ("portable numerics: 4 operations of 1 kind" in " ".join(done.stdout.split())) == bool(options)
    results = json.loads((tmp_path / "v" / "results.json").read_text())
    (typed,) = {run["numerics"] for run in results["runs"].values()}
    assert typed.startswith("repro portable -- ") == bool(options)


def test_verify_ends_where_nothing_is_portable(tree: Path, tmp_path: Path) -> None:
    done = repro(tree, tmp_path, "verify", "--portable", "--ask=restart", "--output=f", "--", "sh", "-c", "echo > f")
    assert done.returncode == 1
    assert "error: verify: the command fails as it stands: NOTHING WAS PORTABLE: no Python process" in done.stderr


@pytest.mark.parametrize("command", ["record", "verify"])
def test_options_without_portable_are_refused(command: str, tree: Path, tmp_path: Path) -> None:
    done = repro(tree, tmp_path, command, "--allow=svd", "--", "true")
    assert done.returncode == 2 and f"error: {command}: --allow goes with --portable" in done.stderr


def test_options_of_a_record() -> None:
    options = Portable(("linalg_svd", "torchvision::nms"), "highest")
    assert Portable.from_fact(options.as_fact()) == options
    assert Portable.from_fact(Portable().as_fact()) == Portable() and Portable.from_fact(None) is None
    for fact in (1, "high", {}, {"precision": "low"}, {"precision": "high", "allow": "a b"}, {"precision": 1}):
        with pytest.raises(Flaw):
            Portable.from_fact(fact)


STEPS = str(PROGRAMS / "portable_steps.py")


@pytest.mark.deep
def test_a_network_has_the_same_bits_with_any_number_of_threads(tmp_path: Path) -> None:
    """Of PyTorch itself: a worker computes, too, an operation is run natively, and another process is observed."""
    train = ("--", interpreter("pytorch"), STEPS, "--histogram")
    through = ended(started(ROOT, "portable", "--allow=histogram", *train, "--workers=1", threads="1", cwd=tmp_path))
    assert through.returncode == 0, through.stderr
    assert re.search(
        r"\d+ operations of \d+ kinds \(PyTorch 2\S+, 2 processes\); run natively: histogram$", through.stderr.strip()
    )
    refused = ended(started(ROOT, "record", "--to=a", "--portable", *train, threads="2", cwd=tmp_path))
    assert refused.returncode == 1 and refused.stdout == through.stdout
    error, computed, seen = refused.stderr.splitlines()[-3:]
    assert re.search(rf"histogram of float32 \[.*\] at {re.escape(STEPS)}:\d+: it has no portable form; ", error)
    assert error.endswith('or run it natively with --allow histogram, or in a script with enable(allow=["histogram"])')
    assert computed.startswith("repro portable: ") and "run natively" not in computed
    assert seen.startswith("repro: 3 steps observed (torch 2.")


def test_an_operation_that_there_is_not(tmp_path: Path) -> None:
    """Asked of PyTorch itself, which alone knows its operations."""
    train = ("--", interpreter("pytorch"), "-c", "import torch; print('trained')")
    done = ended(started(ROOT, "portable", "--allow=linalg_svdd", *train, cwd=tmp_path))
    assert done.returncode == 1 and done.stdout == ""
    assert "--allow linalg_svdd: PyTorch 2." in done.stderr and "did you mean linalg_svd?" in done.stderr


@pytest.mark.slow  # the test above has two of its runs
def test_verify_finds_the_same_bits(tmp_path: Path) -> None:
    ask = ("--portable", "--ask=threads,instruction_set", "--json=j")
    done = ended(started(ROOT, "verify", *ask, "--", interpreter("pytorch"), STEPS, cwd=tmp_path), seconds=900)
    assert done.returncode == 0, done.stdout + done.stderr
    for answer in json.loads((tmp_path / "j").read_text())["answers"]:
        assert (answer["promised"], answer["answer"]) == ("same", "same")
