"""Kernels of portable numerics by themselves, at each vector width: exact, and never outside of their arrays."""

import json
import multiprocessing
import os
import signal
import subprocess
from typing import Any

import pytest

from programs.guards import SIDES, touch
from support.runs import PROGRAMS, ROOT, needs, some
from support.vectors import WIDTHS, needs_width


@pytest.fixture(scope="module", params=some(WIDTHS, 256, deep=(512, 128)))
def bits(request: pytest.FixtureRequest) -> int:
    needs("pytorch")  # which has llvmlite
    needs_width(request.param)
    return request.param


@pytest.fixture(scope="module")
def results(bits: int) -> dict[str, Any]:
    python, worker = ROOT / ".venv/pytorch/bin/python", PROGRAMS / "kernels_worker.py"
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(
        [str(python), "-s", "-P", str(worker), str(bits)], env=env, capture_output=True, text=True, check=False
    )
    last = "\n".join(done.stderr.splitlines()[-20:])
    assert done.returncode == 0, f"exit code {done.returncode}, after:\n{last}"
    return json.loads(done.stdout)


def test_kernels_are_exact_between_guards(results: dict[str, Any]) -> None:
    assert len(results["kernels"]) == (251 if results["pairs"] else 129)
    assert [name for name, exact, _ in results["kernels"] if not exact] == []


def test_kernels_of_no_turns_change_nothing(results: dict[str, Any]) -> None:
    assert [name for name, _, idle in results["kernels"] if not idle] == []


def test_a_loop_may_have_no_turns(results: dict[str, Any]) -> None:
    assert results["turns"] == {"0 to 3": 3, "3 to 3": 0, "5 to 2": 0, "-2 to 1": 3}


def test_kernels_have_vectors_of_this_width_and_no_wider(results: dict[str, Any], bits: int) -> None:
    if not results["registers"]:
        pytest.skip("this CPU is no x86, whose registers have these names")
    assert results["registers"] == ["xmm", "ymm", "zmm"][: 1 + sorted(WIDTHS).index(bits)]


def test_a_width_is_chosen_before_anything_is_compiled(results: dict[str, Any], bits: int) -> None:
    assert results["late"] == f"limit({bits}) comes too late: the features of this processor are in use"


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("write", [False, True], ids=["read", "written"])
def test_what_is_outside_of_an_array_is_guarded(side: str, write: bool) -> None:
    for index, code in ((0, 0), (2, 0), (3 if side == "after" else -1, -signal.SIGSEGV)):
        process = multiprocessing.get_context("spawn").Process(target=touch, args=(side, index, write))
        process.start()
        process.join()
        assert process.exitcode == code
