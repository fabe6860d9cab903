"""All operations that a framework tests itself, with drawn arguments: bits between settings, values beside float64, errors."""

import re
from pathlib import Path

import numpy as np
import pytest

from programs.fuzz import compare, contents
from programs.fuzz.cases import Outcome, kept
from programs.fuzz.limit import FUNCTION, SUM, Limit
from programs.fuzz.settings import SETTINGS
from support.programs import program

FEW = {"pytorch": 1200, "tensorflow": 1200, "jax": 170}
ALL = {"pytorch": 8000, "tensorflow": 13000, "jax": 12000}
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


# --- what is a fault --------------------------------------------------------------------------------------------------


def call(value: float, status: str = "computed") -> dict[tuple[str, str], Outcome]:
    """The outcomes of one process: a call whose result is one number of float32."""
    arrays = (kept(np.array([value], np.float32)),) if status == "computed" else ()
    return {("exp", "float32 plain 0 forward"): Outcome("exp", "float32 plain 0 forward", status, "", arrays)}


def faults(**changed: dict[tuple[str, str], Outcome]) -> list[str]:
    """The faults of a call that gives 1 in all settings but those that are changed."""
    results = {name: changed.get(name.replace(" ", "_"), call(1.0)) for name in SETTINGS}
    return [fault for row in compare.table("pytorch", results).values() for fault in row.faults]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"four_threads": call(1 + 2.0**-23)}, "other bits"),
        ({"narrow_instructions": call(0, "failed")}, "other bits"),
        ({"double": call(1 + 2.0**-20), "native": call(1 + 2.0**-20)}, "8 ulp"),
        ({"native": {}}, "the process ended early?"),
        (
            {name.replace(" ", "_"): call(0, "failed") for name in SETTINGS if name not in ("native", "double")},
            "computes",
        ),
    ],
)
def test_a_fault_is_named(changed: dict[str, dict[tuple[str, str], Outcome]], fault: str) -> None:
    assert faults() == []
    (text,) = {each for each in faults(**changed) if fault in each}
    assert fault in text


@pytest.mark.parametrize(
    ("result", "exact", "native", "limit", "right"),
    [
        (1 + 2.0**-22, 1.0, 1.0, FUNCTION, True),
        (1 + 3 * 2.0**-23, 1.0, 1.0, FUNCTION, False),
        (np.nan, 1.0, 1.0, FUNCTION, False),
        (np.nan, 1.0, 1.0, SUM, True),
        (np.inf, 1e300, np.inf, FUNCTION, True),
        (0.0, 2.0**-140, 2.0**-140, FUNCTION, False),
        (0.0, 2.0**-140, 2.0**-140, SUM, True),
        (1 + 2.0**-20, 1.0, 1 + 2.0**-21, Limit(own=2), True),
        (1 + 2.0**-20, 1.0, 1.0, Limit(own=2), False),
        (1 + 2.0**-20, 1.0, 1 + 2.0**-21, Limit(worst=2), True),
        (1 + 2.0**-20, 1.0, 1 + 2.0**-22, Limit(worst=2), False),
        (64 + 2.0**-7, 64.0, 64.0, Limit(squares=True), True),
        (64 + 2.0**-3, 64.0, 64.0, Limit(squares=True), False),
        (np.inf, np.inf, 1.0, FUNCTION, True),
        (1.0, np.inf, np.inf, FUNCTION, False),
        (1.0, np.inf, np.inf, Limit(overflows=True), True),
    ],
)
def test_values_are_right_within_the_limit(
    result: float, exact: float, native: float, limit: Limit, right: bool
) -> None:
    x, y, own = (kept(np.array([each], dtype)) for each, dtype in ((result, "f4"), (exact, "f8"), (native, "f4")))
    assert (compare.distance(x, y, own, limit)[2] == "") == right


@pytest.mark.parametrize("dtype", contents.FORMATS)
def test_numbers_of_all_magnitudes_are_of_their_type(dtype: str) -> None:
    x = contents.everywhere(dtype, 3000, np.random.default_rng(0))
    bits, least, most = contents.FORMATS[dtype]
    finite = x[np.isfinite(x) & (x != 0)]
    exponents = np.frexp(finite)[1] - 1
    assert exponents.min() == least - bits + 1 and exponents.max() == most
    whole = np.ldexp(finite, bits - 1 - np.maximum(exponents, least))
    assert (whole == np.rint(whole)).all() and np.isnan(x).any()
