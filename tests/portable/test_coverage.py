"""Trainings under portable numerics, in fresh processes: the quick part of docs/reference/coverage.md."""

import json

import pytest

from repro.verify.command_questions import SSE4, THREADS
from support.programs import program
from support.runs import ROOT

pytestmark = pytest.mark.deep

COUNT = 9


def fingerprints(
    *options: str, threads: int, framework: str = "pytorch", group: str = "plain", **environment: str
) -> dict[str, str]:
    """By program."""
    environment |= {name: str(threads) for name in THREADS}
    printed = program(
        framework, ROOT / "evidence/coverage/worker.py", group, *options, f"--threads={threads}", **environment
    )
    content = {line["name"]: line for line in map(json.loads, printed.splitlines())}
    failed = {name: line for name, line in content.items() if "fingerprint" not in line}
    assert not failed
    return {name: line["fingerprint"] for name, line in content.items()}


@pytest.fixture(scope="module")
def portable() -> dict[str, str]:
    return fingerprints("--portable", "--plain", threads=1, **dict(SSE4))


def test_programs_have_the_same_bits_by_kernels_threads_and_instruction_sets(portable: dict[str, str]) -> None:
    assert len(portable) == COUNT
    assert fingerprints("--portable", threads=2) == portable


@pytest.mark.slow
def test_the_same_programs_have_other_bits_without_portable_numerics() -> None:
    one, other = fingerprints(threads=1, **dict(SSE4)), fingerprints(threads=2)
    assert [name for name in one if one[name] != other[name]]


@pytest.mark.slow
def test_losses_of_keras_have_the_same_bits_by_kernels_threads_and_instruction_sets() -> None:
    losses = {"framework": "tensorflow", "group": "losses"}
    narrow = fingerprints("--portable", "--plain", threads=1, **losses, **dict(SSE4))
    assert len(narrow) == 22
    assert fingerprints("--portable", threads=2, **losses) == narrow
