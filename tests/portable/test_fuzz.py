"""All operations that a framework tests itself, with drawn arguments: bits between settings, values beside float64, errors."""

import re
from pathlib import Path

import pytest

from support.programs import program

FEW = {"pytorch": 1200, "jax": 170}
ALL = {"pytorch": 8000}
"""How many calls are computed at least, a few of each operation and all, by framework."""


def computed(framework: str, folder: Path, *options: str) -> int:
    """How many calls are computed, without a fault."""
    printed = program(framework, "fuzz/compare.py", framework, str(folder), *options)
    last = re.search(r"(\d+) computed, \d+ refused; 0 faults\n$", printed)
    assert last, printed
    return int(last[1])


@pytest.mark.deep
@pytest.mark.parametrize("framework", FEW)
def test_a_few_calls_of_each_operation_are_right_and_equal_in_all_settings(framework: str, tmp_path: Path) -> None:
    assert computed(framework, tmp_path) > FEW[framework]


@pytest.mark.slow
@pytest.mark.parametrize("framework", ALL)
def test_all_calls_are_right_and_equal_in_all_settings(framework: str, tmp_path: Path) -> None:
    assert computed(framework, tmp_path, "--all") > ALL[framework]
