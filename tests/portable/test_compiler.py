"""PyTorch's compiler: kernels with the bits of its operations."""

import itertools
import json
import subprocess
from typing import Any

import pytest

from support.runs import ROOT, needs, some
from support.vectors import WIDTHS, needs_width

pytestmark = pytest.mark.deep


def python(*command: str) -> str:
    needs("pytorch")
    done = subprocess.run(
        [str(ROOT / ".venv" / "pytorch" / "bin" / "python"), "-s", "-P", *command],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


QUICK = ("float64", 128), ("int16", 512), ("int16", 256)


@pytest.fixture(
    scope="module",
    params=some(itertools.product(["float64", "int8", "int16"], WIDTHS), *QUICK),
    ids="{0[0]}-{0[1]}".format,
)
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    engine, bits = request.param
    needs_width(bits)
    return json.loads(python("tests/programs/pytorch_compiler.py", engine, str(bits)))


def test_loops_change_no_bit_with_any_number_of_threads(results: dict[str, Any]) -> None:
    assert results["threads"] == [True] * 15


def test_products_of_int16_are_exact(results: dict[str, Any]) -> None:
    if results["products_of_int16"] == [None]:
        pytest.skip("such vectors have no instruction that multiplies and adds pairs of int16")
    assert results["products_of_int16"] == [True] * 100
    assert results["products_of_any_size"] == [True] * 36


def test_products_that_do_not_fit_are_refused(results: dict[str, Any]) -> None:
    if results["refused"] == [None]:
        pytest.skip("such vectors have no instruction that multiplies and adds pairs of int16")
    assert results["refused"] == [True] * 5


def test_a_dense_layer_is_the_same_by_any_engine(results: dict[str, Any]) -> None:
    assert results["dense"] == [True] * 20


def test_loops_over_nothing(results: dict[str, Any]) -> None:
    assert results["empty"] == [True] * 12


def test_views_are_of_the_memory_that_they_were_of(results: dict[str, Any]) -> None:
    assert results["views"] == [True] * (2 * 2 * 4 * 6 + 1)


def test_torch_compile_traces_convolutions(results: dict[str, Any]) -> None:
    assert results["traced"] == [True] * 6


def test_what_comes_once_is_not_compiled(results: dict[str, Any]) -> None:
    assert results["shapes"] == {"other": [5, 0], "same": [5, 5]}


def test_loops_that_give_other_bits_are_not_used(results: dict[str, Any]) -> None:
    assert results["unsound"]["same"] == [True] * 5 and results["unsound"]["sound"] == [False] * 2
    assert all("gives different bits in kernels; it runs without" in each for each in results["unsound"]["said"])
    assert any(each.startswith("portable: _affine_forward ") for each in results["unsound"]["said"])


def test_a_rate_that_changes_needs_no_new_loops(results: dict[str, Any]) -> None:
    assert results["rates"] == 1


def test_bits_are_compared_and_every_nan_is_one(results: dict[str, Any]) -> None:
    assert results["tried"] == [True, False, False]


WITHOUT = """
import importlib.util
results = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "llvmlite" else results(name, *rest)
import sys, torch
from repro.portable.kernels import pytorch as compiler
from repro.portable.pytorch import functional
x = torch.ones(3, 4)
for _ in range(3):
    functional.conv2d(torch.ones(1, 2, 4, 4), torch.ones(2, 2, 3, 3))
print(functional.linear(x, x).tolist() == [[4.0] * 3] * 3, compiler.available, "llvmlite" in sys.modules)
"""


def test_llvmlite_need_not_be_there() -> None:
    assert python("-c", WITHOUT).split() == ["True", "False", "False"]


@pytest.fixture(scope="module")
def definitions() -> dict[str, Any]:
    return json.loads(python("tests/programs/without_kernels.py", "amid"))


def test_without_kernels_a_network_is_trained_to_the_same_bits() -> None:
    with_kernels, without = (python("tests/programs/without_kernels.py", "trained", each) for each in ("kernels", "no"))
    assert json.loads(with_kernels)[0] == json.loads(without)[0]


def test_elements_in_blocks_have_the_same_bits(definitions: dict[str, Any]) -> None:
    assert definitions["blocks"] == [True] * 12
    assert definitions["calls"] == [2**14, 2**14, 6]


def test_what_interrupts_a_definition_without_kernels_is_portable(definitions: dict[str, Any]) -> None:
    assert definitions["interrupted"] == [True] * 6


def test_tensors_are_made_amid_a_definition_without_kernels(definitions: dict[str, Any]) -> None:
    assert definitions["factories"] == [[0.0, 0.0], [0, 1], [[True, True]], [3.0], [1.0], [True]]
