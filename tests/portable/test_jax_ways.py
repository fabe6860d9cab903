"""Ways by which a JAX program computes, and what it seldom asks for: repro.portable.modes.jax."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from repro.verify.command_questions import SSE4
from support.programs import program

pytestmark = pytest.mark.deep

FOLDER = "jax_mode"


# --- ways -------------------------------------------------------------------------------------------------------------


def ways(mode: str, *only: str, devices: int = 1, **variables: str) -> dict[str, Any]:
    flags = f"{dict(SSE4)['XLA_FLAGS'] if devices == 2 else ''} --xla_force_host_platform_device_count={devices}"
    return json.loads(program("jax", f"{FOLDER}/ways.py", mode, *only, XLA_FLAGS=flags, **variables))


@pytest.fixture(scope="module")
def expected() -> str:
    """The hash of the gradient on one device."""
    (only,) = {*ways("portable")["hashes"].values()}
    return only


@pytest.mark.parametrize("devices", [2, 4])
def test_each_way_gives_the_same_bits_on_any_number_of_devices(devices: int, expected: str) -> None:
    result = ways("portable", devices=devices)
    assert len(result["hashes"]) == 9 and {*result["hashes"].values()} == {expected}
    assert result["scattered"] == {"first axis": True, "second axis": True}


@pytest.mark.xdist_group("ports")
def test_two_processes_that_share_the_rows_give_the_bits_of_one(expected: str) -> None:
    assert json.loads(program("jax", f"{FOLDER}/processes.py", "2")) == [expected] * 2


@pytest.mark.slow
def test_the_ways_give_other_bits_without_portable_numerics() -> None:
    assert len({*ways("own", devices=4)["hashes"].values()}) > 3


def test_processes_of_both_kinds_share_a_cache_on_disk(tmp_path: Path, expected: str) -> None:
    variables = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    own = ways("own", "jit")["hashes"]["jit"]
    for _ in range(2):  # some write at once, all read what others wrote
        with ThreadPoolExecutor(3) as pool:
            results = list(
                pool.map(lambda mode: ways(mode, "jit", devices=1, **variables), ("own", "portable", "portable"))
            )
        assert [each["hashes"]["jit"] for each in results] == [own, expected, expected] and own != expected
        assert list(tmp_path.iterdir())


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def edges() -> dict[str, Any]:
    return json.loads(program("jax", f"{FOLDER}/edges.py"))


def test_functions_of_empty_arrays_have_the_shapes_that_jax_says(edges: dict[str, Any]) -> None:
    assert edges["empty"] == []


def test_products_at_repeated_indices_are_taken_in_the_order_of_the_updates(edges: dict[str, Any]) -> None:
    assert edges["repeated"] == {"float32": True, "bfloat16": True, "float64": True}


def test_incomplete_gamma_and_beta_functions_are_rounded_once(edges: dict[str, Any]) -> None:
    assert edges["incomplete"].keys() == {"igamma", "igammac", "betainc"}
    assert max(edges["incomplete"].values()) < 1.01
    assert edges["slopes_next_to_zero"] == [0.0] * 6
    assert edges["slopes_at_infinity"][:2] == [0.0, 0.0] and math.isnan(edges["slopes_at_infinity"][2])
    assert edges["shares_at_edges"] == [[1.0, 1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]]


def test_integers_are_refused_where_a_primitive_is_not_known(edges: dict[str, Any]) -> None:
    said = edges["integers"]
    assert said["callback"].startswith("portable numerics: pure_callback of int32 [4]")
    assert said["generator"].startswith("portable numerics: rng_bit_generator of uint32 [4]")
    assert said["key"].startswith("portable numerics: rng_bit_generator of uint32 [4]")
    assert (said["order"], said["no result"]) == ("passed", "passed")


def test_an_exported_program_calls_no_kernels_and_has_the_same_bits(edges: dict[str, Any]) -> None:
    assert edges["exported"] == {"kernels": False, "same": True}


def test_random_bits_are_those_of_jax(edges: dict[str, Any]) -> None:
    assert edges["random_bits"] == [True] * 6


def test_xla_computes_a_power_once_for_all_arrays_that_read_it(edges: dict[str, Any]) -> None:
    few, many = edges["powers_compiled"]
    assert few == many > 0


def test_float16_is_refused_by_name_on_a_cpu_that_xla_cannot_convert_it_on() -> None:
    said = json.loads(program("jax", f"{FOLDER}/halves.py", XLA_FLAGS=dict(SSE4)["XLA_FLAGS"]))
    assert said.pop("moves") == "passed" and {*said} == {"product", "order", "conversion"}
    assert all("XLA cannot compute with float16 on a CPU without F16C; use bfloat16" in each for each in said.values())
    said = json.loads(program("jax", f"{FOLDER}/halves.py"))
    assert {*said.values()} == {"passed"}
