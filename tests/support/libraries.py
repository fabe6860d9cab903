"""Results of the libraries of JAX and TensorFlow."""

import json
from functools import cache

import numpy as np

from support.programs import program
from support.runs import alone, needs


@cache
def library(framework: str, *arguments: str) -> dict[str, np.ndarray]:
    """Arrays by MODE/CASE/NAME, and `lines`; skips the test where the framework's environment is missing."""
    needs(framework)
    with alone("-".join((framework, "library", *arguments))) as place:  # two files of tests compare with JAX's
        path = place.with_suffix(".npz")
        if not path.exists():
            program(framework, f"{framework}_library.py", str(path), *arguments)
    with np.load(path) as archive:
        return dict(archive)


def lines(framework: str) -> dict[str, str]:
    """By which something was refused."""
    return json.loads(str(library(framework)["lines"]))


def assert_same(results: dict[str, np.ndarray], mode: str, expected: dict[str, np.ndarray], case: str) -> None:
    """Equal bits of a case in a mode, and compiled in what is expected."""
    names = [name for name in expected if name.startswith(f"compiled/{case}/")]
    assert names and len(names) == sum(name.startswith(f"{mode}/{case}/") for name in results)
    for name in names:
        array = results[name.replace("compiled", mode, 1)]
        assert array.dtype == expected[name].dtype and array.shape == expected[name].shape
        assert array.tobytes() == expected[name].tobytes(), name
