"""Measure the errors of the functions of portable numerics.

.venv/pytorch/bin/python docs/functions.py             stop where docs/reference/functions.md has another table
.venv/pytorch/bin/python docs/functions.py --write     write it anew
.venv/pytorch/bin/python docs/functions.py --quick     fewer arguments; stop where an error is larger than in the table

The reference implementation, which has the bits of every device, is compared with mpmath, which PyTorch brings, at 200
bits. An error is in units in the last place of the exact result, of float32 (where it is what remains after rounding) or
of float64. Arguments are drawn by a fixed seed, so the table is the same on every machine. It takes some minutes.
"""

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests"))

from reference import activations, functions, special, trigonometric

PAGE = Path(__file__).parent / "reference" / "functions.md"
TABLE = re.compile(r"(<!-- errors -->\n)(.*?)(<!-- end -->)", re.DOTALL)
SMALLEST = {24: -126, 53: -1022}
"""The exponent of the smallest normal number."""
RANDOM = np.random.default_rng(0)
Draw = Callable[[int, int], np.ndarray]
"""So many arguments for results of 24 or 53 bits."""


def uniform(low: float, high: float) -> Draw:
    return lambda size, _: RANDOM.uniform(low, high, size)


def signs(size: int) -> np.ndarray:
    return RANDOM.choice([-1.0, 1.0], size)


def near(middle: float, low: float = 1e-7, high: float = 0.5) -> Draw:
    """On both sides of a number, at all distances."""
    return lambda size, _: middle + signs(size) * np.exp(RANDOM.uniform(math.log(low), math.log(high), size))


def any_size(positive: bool = False, high: float | None = None) -> Draw:
    """All magnitudes that float32 or float64 have, up to `high`."""

    def numbers(size: int, bits: int) -> np.ndarray:
        low, top = (2.0**-126, 2.0**127) if bits == 24 else (2.0**-1000, 2.0**1000)
        result = np.exp(RANDOM.uniform(math.log(low), math.log(high or top), size))
        return result if positive else result * signs(size)

    return numbers


def of_range(single: float, double: float, positive: bool = False) -> Draw:
    """Up to an end, that of float32 or of float64."""

    def numbers(size: int, bits: int) -> np.ndarray:
        end = single if bits == 24 else double
        return RANDOM.uniform(0 if positive else -end, end, size)

    return numbers


@dataclass(frozen=True)
class Case:
    """A function, its exact value, and the arguments, a list for each array."""

    name: str
    function: Callable[..., Any]
    exact: Callable[..., Any]
    arguments: tuple[tuple[Draw, ...], ...]
    shown: str

    def error(self, bits: int, size: int) -> tuple[float, tuple[float, ...]]:
        """The largest, and its arguments."""
        arrays = [np.concatenate([draw(size // len(draws), bits) for draw in draws]) for draws in self.arguments]
        if bits == 24:
            arrays = [array.astype(np.float32).astype(float) for array in arrays]
        with np.errstate(all="ignore"):
            result = self.function(*arrays, bits=bits)
            result = result.astype(np.float32).astype(float) if bits == 24 else result
        worst, at = 0.0, (math.nan,)
        for y, *x in zip(result, *arrays, strict=True):
            error = ulps(float(y), self.exact(*map(mpf, x)), bits)
            if error > worst:
                worst, at = error, tuple(map(float, x))
        return worst, at


def ulps(y: float, exact: Any, bits: int) -> float:
    """How far y is from the exact value; 0 where that is beyond the largest number."""
    if not math.isfinite(y) or exact == 0:
        return 0.0
    exponent = max(mpmath.mag(exact) - 1, SMALLEST[bits])
    return float(abs(mpf(y) - exact) / mpf(2) ** (exponent - bits + 1))


def exact_ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def exact_log_ndtr(x: Any) -> Any:
    return mpmath.log(exact_ndtr(x)) if x < 0 else mpmath.log1p(-exact_ndtr(-x))


def exact_sinc(x: Any) -> Any:
    return mpmath.sinpi(x) / (mpmath.pi * x) if x else mpf(1)


def exact_ndtri(p: Any) -> Any:
    """By Newton's method, as mpmath has it for 1 - 2 p alone."""
    x = mpf(float(special.ndtri(np.array([float(p)]))[0]))
    for _ in range(5):
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        x -= (exact_ndtr(x) - p) / density
    return x


def exact_logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def scaled_bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


F, T, S, A = functions, trigonometric, special, activations
WHOLE, UNIT = any_size(), uniform(-1, 1)
ANGLES = (uniform(-10, 10), of_range(1e6, 1e6), any_size(), near(math.pi), near(math.pi / 2))
CASES = [
    Case("exp", F.exp, mpmath.exp, ((of_range(88, 709), UNIT),), "all"),
    Case("exp2", F.exp2, lambda x: mpf(2) ** x, ((of_range(127, 1022), UNIT),), "all"),
    Case("expm1", F.expm1, mpmath.expm1, ((of_range(88, 709), UNIT, any_size(high=1)),), "all"),
    Case("log", F.log, mpmath.log, ((any_size(True), near(1)),), "all"),
    Case("log2", F.log2, lambda x: mpmath.log(x) / mpmath.log(2), ((any_size(True), near(1)),), "all"),
    Case("log10", F.log10, mpmath.log10, ((any_size(True), near(1)),), "all"),
    Case("log1p", F.log1p, mpmath.log1p, ((any_size(True), uniform(-0.999, 3), any_size(high=0.5)),), "all"),
    Case("sigmoid", F.sigmoid, exact_logistic, ((of_range(88, 700), uniform(-20, 20), UNIT),), "all"),
    Case("log_sigmoid", F.log_sigmoid, lambda x: -mpmath.log1p(mpmath.exp(-x)), ((of_range(88, 700), UNIT),), "all"),
    Case("softplus", F.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), ((of_range(88, 700), UNIT),), "all"),
    Case(
        "logit", F.logit, lambda x: mpmath.log(x / (1 - x)), ((uniform(0, 1), any_size(True, 0.5), near(0.5)),), "all"
    ),
    Case("tanh", F.tanh, mpmath.tanh, ((uniform(-20, 20), UNIT, any_size(high=1)),), "all"),
    Case("sin", T.sin, mpmath.sin, (ANGLES,), "all"),
    Case("cos", T.cos, mpmath.cos, (ANGLES,), "all"),
    Case("tan", T.tan, mpmath.tan, (ANGLES,), "all"),
    Case("sinc", T.sinc, exact_sinc, ((uniform(-30, 30), WHOLE),), "all"),
    Case("asin", T.asin, mpmath.asin, ((UNIT, any_size(high=1), lambda *_: 1 - abs(near(0)(*_))),), "all"),
    Case("acos", T.acos, mpmath.acos, ((UNIT, any_size(high=1), lambda *_: 1 - abs(near(0)(*_))),), "all"),
    Case("atan", T.atan, mpmath.atan, ((uniform(-3, 3), WHOLE),), "all"),
    Case("atan2", T.atan2, mpmath.atan2, ((uniform(-3, 3), any_size(high=1e30)), (uniform(-3, 3),) * 2), "all"),
    Case("sinh", F.sinh, mpmath.sinh, ((of_range(88, 709), UNIT, any_size(high=1)),), "all"),
    Case("cosh", F.cosh, mpmath.cosh, ((of_range(88, 709), UNIT),), "all"),
    Case("asinh", F.asinh, mpmath.asinh, ((uniform(-10, 10), WHOLE),), "all"),
    Case(
        "acosh",
        F.acosh,
        mpmath.acosh,
        ((lambda *_: 1 + abs(near(0, high=9.0)(*_)), lambda *_: 1 + any_size(True)(*_)),),
        "all",
    ),
    Case("atanh", F.atanh, mpmath.atanh, ((UNIT, any_size(high=0.9)),), "all"),
    Case(
        "power",
        F.power,
        mpmath.power,
        ((uniform(0, 3), uniform(0.5, 2), any_size(True)), (uniform(-30, 30), of_range(126, 1000), UNIT)),
        "all",
    ),
    Case("hypot", F.hypot, mpmath.hypot, ((uniform(-3, 3), WHOLE), (uniform(-3, 3), WHOLE)), "all"),
    Case(
        "logaddexp",
        F.logaddexp,
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        ((uniform(1, 30),), (uniform(1, 30),)),
        "above 0",
    ),
    Case("erf", S.erf, mpmath.erf, ((uniform(-6, 6), UNIT, any_size(high=1)),), "all"),
    Case("erfc", S.erfc, mpmath.erfc, ((of_range(9, 26), UNIT, any_size(high=1)),), "all"),
    Case("ndtr", S.ndtr, exact_ndtr, ((of_range(12.9, 37), UNIT),), "all"),
    Case("log_ndtr", S.log_ndtr, exact_log_ndtr, ((of_range(12, 37), UNIT),), "all"),
    Case("erfinv", S.erfinv, mpmath.erfinv, ((UNIT, any_size(high=1)),), "all"),
    Case("ndtri", S.ndtri, exact_ndtri, ((uniform(0, 1), any_size(True, 0.5)),), "all"),
    Case(
        "lgamma",
        S.lgamma,
        lambda x: mpmath.re(mpmath.loggamma(x)),
        ((uniform(0, 20), near(1), near(2), any_size(True)),),
        "above 0",
    ),
    Case("digamma", S.digamma, mpmath.digamma, ((uniform(0, 20), near(1.4616), any_size(True)),), "above 0"),
    Case("i0", S.i0, lambda x: mpmath.besseli(0, x), ((uniform(-30, 30), UNIT),), "all"),
    Case("i0e", S.i0e, scaled_bessel(0), ((uniform(-30, 30), UNIT),), "all"),
    Case("i1", S.i1, lambda x: mpmath.besseli(1, x), ((uniform(-30, 30), UNIT),), "all"),
    Case("i1e", S.i1e, scaled_bessel(1), ((uniform(-30, 30), UNIT),), "all"),
    Case("gelu", A.gelu, lambda x: x * exact_ndtr(x), ((of_range(12, 36), UNIT),), "all"),
    Case("silu", A.silu, lambda x: x * exact_logistic(x), ((of_range(80, 690), UNIT),), "all"),
    Case("mish", A.mish, lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), ((of_range(80, 340), UNIT),), "all"),
]


def table(size: int) -> str:
    """Rows of the largest errors; a function's own arguments do not depend on the others."""
    global RANDOM
    rows = ["| function | float32 | float64 | arguments |", "|---|---|---|---|"]
    for case in CASES:
        RANDOM = np.random.default_rng(0)
        errors = [case.error(bits, size)[0] for bits in (24, 53)]
        rows.append(f"| `{case.name}` | {ceiling(errors[0], 4):.4f} | {ceiling(errors[1], 1):.1f} | {case.shown} |")
    return "\n".join(rows) + "\n"


def ceiling(x: float, digits: int) -> float:
    return math.ceil(x * 10**digits) / 10**digits


def larger(old: str, new: str) -> list[str]:
    """The functions whose errors are larger than in the table."""
    errors = [
        {row.split("|")[1].strip(): tuple(map(float, row.split("|")[2:4])) for row in text.splitlines()[2:]}
        for text in (old, new)
    ]
    return [
        name for name, result in errors[1].items() if any(a > b for a, b in zip(result, errors[0][name], strict=True))
    ]


def main(*arguments: str) -> int:
    """The exit code is 1 where the table is out of date, or does not hold."""
    mp.prec = 200
    page = PAGE.read_text(encoding="utf-8")
    match = TABLE.search(page)
    assert match is not None
    if "--quick" in arguments:
        wrong = larger(match[2], table(60))
        print(
            f"docs/reference/functions.md: larger errors of {', '.join(wrong)}"
            if wrong
            else "every error is within the table"
        )
        return 1 if wrong else 0
    fresh = table(9000)
    if "--write" in arguments:
        PAGE.write_text(TABLE.sub(lambda match: match[1] + fresh + match[3], page), encoding="utf-8")
    elif fresh != match[2]:
        print("docs/reference/functions.md: its table is out of date; write it anew with: docs/functions.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
