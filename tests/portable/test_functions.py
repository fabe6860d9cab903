"""Functions of float64 against the reference: bits are compared with ==, NaN is NaN.

And the reference against mpmath, by docs/functions.py.
"""

import json
import math
import subprocess
from typing import Any

import numpy as np
import pytest

from reference import activations, functions, special, trigonometric
from support.programs import ENVIRONMENT, program
from support.runs import ROOT, needs, some
from support.workers import ask

__all__ = ["ask"]  # a fixture

FILES = {
    "functions.exponential": "exp exp2 expm1 sigmoid tanh",
    "functions.logarithmic": "log log2 log10 log1p softplus log_sigmoid logit logaddexp xlogy xlog1py",
    "functions.powers": "sqrt rsqrt hypot power",
    "functions.trigonometric": "sin cos tan sinc",
    "functions.inverse": "atan asin acos atan2",
    "functions.hyperbolic": "sinh cosh asinh acosh atanh",
    "functions.errors": "erf erfc ndtr log_ndtr",
    "functions.quantiles": "erfinv ndtri",
    "functions.gamma": "lgamma digamma",
    "functions.bessel": "i0 i0e i1 i1e",
    "activations": "gelu gelu_backward silu silu_backward mish mish_backward softplus softplus_backward elu elu_backward"
    " hardsigmoid hardsigmoid_backward hardswish hardswish_backward log_sigmoid_backward sigmoid_backward tanh_backward"
    " glu glu_backward",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "gelu": {"tanh": True},
    "gelu_backward": {"tanh": True},
    "softplus": {"beta": 1.7, "threshold": 15.0},
    "softplus_backward": {"beta": 1.7, "threshold": 15.0},
    "elu": {"alpha": 1.3, "scale": 1.1, "input_scale": 0.7},
    "elu_backward": {"alpha": 1.3, "scale": 1.1, "input_scale": 0.7},
}
"""Of activations, which are computed with them, and without."""
ARRAYS = dict.fromkeys(("logaddexp", "xlogy", "xlog1py", "hypot", "power", "atan2", "glu"), 2) | {"glu_backward": 3}
FINITE = [0.0, 5e-324, 1e-310, 3e-39, 2.0**-30, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 8.0, 8.5, 28.0, 103.5, 709.7, 745.5]
NEAR_MULTIPLES_OF_PI = [math.ldexp(16367173, 72), math.ldexp(6381956970095103, 797)]
"""Of its half, nearest of all numbers of float32, and of float64."""
LARGE = [2.0**20, 2.0**51 + 0.5, 2.0**60, 1e17, 1e38, 1e308]
SPECIAL = [*FINITE, *LARGE, *NEAR_MULTIPLES_OF_PI, np.inf]


def numbers(bits: int, seed: int) -> np.ndarray:
    """Of both signs and all magnitudes, with special ones; float32 numbers for 24 bits."""
    random = np.random.default_rng(seed)
    sizes = np.exp(random.uniform(-80, 80, 60))
    x = np.concatenate(
        (np.array(SPECIAL), sizes, random.uniform(0, 1, 60), random.normal(0, 3, 60), random.uniform(0, 60, 40))
    )
    x = np.concatenate((x, -x, [np.nan]))
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(float) if bits == 24 else x


def arguments(bits: int, arrays: int) -> list[np.ndarray]:
    """Of one array, or of more that meet one another: special numbers all with all, the others by chance."""
    if arrays == 1:
        return [numbers(bits, 0)]
    special = numbers(bits, 0)[[*range(len(SPECIAL)), -1]]
    special = np.concatenate((special, -special))
    meeting = [each.reshape(-1) for each in np.meshgrid(special, special)]
    random = np.random.default_rng(1)
    results = [np.concatenate((each, random.permutation(numbers(bits, seed)))) for seed, each in enumerate(meeting)]
    return [random.permutation(results[0]) for _ in range(arrays - 2)] + results


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))


def compare(ask, way: str, file: str, name: str, options: dict[str, Any]) -> None:
    homes = [activations] if file == "activations" else [functions, trigonometric, special]
    (home,) = (module for module in homes if getattr(vars(module).get(name), "__module__", "") == module.__name__)
    arrays = ARRAYS.get(name, 1 + name.endswith("_backward"))
    given = arguments(options["bits"], arrays)
    with np.errstate(all="ignore"):
        right = getattr(home, name)(*given, **options)
    result, _ = ask(way, f"{file}.{name}", options, given)
    for each, expected in zip(result, right if isinstance(right, tuple) else (right,), strict=True):
        wrong = ~same(each, np.asarray(expected, float))
        first = [array[wrong][0] for array in given] if wrong.any() else []
        assert not wrong.any(), f"{name} of {first}: {each[wrong][0]!r} for {expected[wrong][0]!r}"


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("bits", some([24, 53], 24, deep=(53,)))
@pytest.mark.parametrize("way", some(["pytorch eager", "pytorch kernels"], "pytorch eager", deep=("pytorch kernels",)))
def test_function_is_that_of_the_reference_implementation(ask, way: str, bits: int, file: str) -> None:
    for name in FILES[file].split():
        compare(ask, way, file, name, {"bits": bits})
        if file == "activations" and name in OPTIONS:
            compare(ask, way, file, name, {"bits": bits} | OPTIONS[name])


@pytest.mark.deep
def test_incomplete_gamma_functions_their_slopes_and_zeta_are_right_in_the_tails_too() -> None:
    largest = json.loads(program("pytorch", "incomplete_errors.py"))
    assert largest.pop("beta_share") < 3e-13
    assert {name: error for name, error in largest.items() if not error < 2e-13} == {}


@pytest.mark.deep
def test_bessel_functions_are_right_next_to_their_zeros_too() -> None:
    errors = json.loads(program("pytorch", "bessel_errors.py"))
    assert len(errors) == 9
    assert {name: pair for name, pair in errors.items() if not (pair[0] < 1.0 and pair[1] < 3e-15)} == {}


@pytest.mark.deep
def test_no_error_is_larger_than_the_documentation_has_it() -> None:
    needs("pytorch")
    command = [str(ROOT / ".venv" / "pytorch" / "bin" / "python"), "-s", "-P", "docs/functions.py", "--quick"]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "every error is within the table\n"), done.stderr
