"""A generator for each task of a thread, in a process of its own."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from repro.inject.marks import MARK
from repro.record.injection import SITE
from support.runs import ROOT

PROGRAM = ROOT / "tests/programs/threads_draw.py"


def drawn(folder: Path, change: str, *words: str, python: str | Path = sys.executable) -> str:
    """What the program prints."""
    (folder / "steps").mkdir(parents=True, exist_ok=True)
    own = {"PYTHONPATH": str(SITE), "REPRO_CHANGES": change, "REPRO_OBSERVE": str(folder)}
    done = subprocess.run(
        [python, PROGRAM, *words], env=os.environ | own, capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("way", ["threads", "executor", "queue", "pool"])
@pytest.mark.parametrize("generator", ["random", "numpy.random"])
def test_each_task_has_the_same_numbers_whichever_thread_comes_first(way: str, generator: str, tmp_path: Path) -> None:
    plain, swapped = (drawn(tmp_path, "objects=1", way, order, generator, "0") for order in ("0123", "3120"))
    assert plain != swapped and not [*tmp_path.glob(f"steps/{MARK}*")]
    first, other = (drawn(tmp_path, "draws=0", way, order, generator, "0") for order in ("0123", "3120"))
    assert first == other
    assert len({*first.split("]")[0].split(",")}) == 4
    assert drawn(tmp_path, "draws=77", way, "0123", generator, "0") != first
    kind = {"random": "python"}.get(generator, "numpy")
    assert [path.name for path in tmp_path.glob(f"steps/{MARK}*")] == [MARK + kind]


def test_what_the_first_thread_draws_is_as_without_any_thread(tmp_path: Path) -> None:
    last = drawn(tmp_path, "draws=0", "executor", "0123", "random", "0").split("] ")[1]
    assert float(last) == random.Random(0).random()


@pytest.mark.parametrize("way", ["threads", "executor", "queue", "pool"])
def test_numbers_of_a_task_follow_from_the_state_of_the_shared_generator(way: str, tmp_path: Path) -> None:
    """So a program that takes its seed from what cannot be held has other numbers in each run all the same."""
    first, other = (drawn(tmp_path, "draws=0", way, "0123", "random", seed) for seed in "01")
    assert first.split("]")[0] != other.split("]")[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", "executor", "queue", "pool"])
def test_tasks_have_generators_of_pytorch(way: str, tmp_path: Path) -> None:
    python = ROOT / ".venv/pytorch/bin/python"
    plain, first, other = (
        drawn(tmp_path, change, way, order, "torch", "0", python=python)
        for change, order in (("objects=1", "3120"), ("draws=0", "0123"), ("draws=0", "3120"))
    )
    assert first == other != plain
