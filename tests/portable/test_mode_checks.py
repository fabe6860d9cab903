"""The self-check of the mode for any PyTorch program."""

import json
from functools import cache
from typing import Any

from support.programs import program

NAMED = {
    "rounding up": "rounding to nearest",
    "truncation": "rounding to nearest",
    "flushing": "numbers below 2^-126",
    "contraction": "a product and a sum, each rounded",
    "reciprocal": "a quotient by a number",
    "root": "a square root",
    "root of definitions": "a square root",
    "maximum": "the choice among equal numbers",
    "sort": "the choice among equal numbers",
    "sum": "a sum of numbers",
    "emulated float64": "a product of matrices of float64",
    "TF32": "a product of matrices of float32",
    "atomics": "a sum at repeated indices",
    "function": "an elementary function",
    "own function": "an elementary function",
    "kernel": "normalization",
    "generator": "a random number",
    "saturation": "an exact product of integers",
    "convolution": "an exact convolution of integers",
}


@cache
def results() -> dict[str, Any]:
    return json.loads(program("pytorch", "mode_checks.py"))


def test_each_planted_fault_is_named() -> None:
    said = dict(results()["faults"])
    assert said.pop("none") == ""
    begin = "portable numerics: PyTorch does not compute "
    assert {fault: line.removeprefix(begin).partition(" by the rules")[0] for fault, line in said.items()} == NAMED
    assert "torch.set_flush_denormal(False)" in said["flushing"]
    assert all("\n" not in line for line in said.values())


def test_fingerprints_are_those_of_the_reference_implementation() -> None:
    assert set(results()["reference"].values()) == {True}


def test_the_mode_stays_off_where_the_check_fails_and_counts_none_of_its_operations() -> None:
    assert results()["on"] == [False, True]
    assert results()["counted"] == 0


def test_a_program_cannot_make_small_numbers_0_while_the_mode_is_on() -> None:
    assert results()["ignored"] == [False, ""]
