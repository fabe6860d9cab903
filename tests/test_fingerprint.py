"""repro.fingerprint: equal for equal bits, whatever lies in memory how; different for any other difference.

Of arrays, and of the weights of a model.
"""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from repro.fingerprint import fingerprint, weights_fingerprint
from support.programs import program

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array([-1, 2], np.int32),
    "scalar": np.array(1.5, np.float32),
}


def with_b(array: np.ndarray) -> dict[str, np.ndarray]:
    return ARRAYS | {"b": array}


def test_it_is_the_hash_that_the_docstring_describes():
    described = (
        b"a int32 2\n" + b"\xff\xff\xff\xff\x02\x00\x00\x00"
        b"b float32 2,3\n"
        + b"".join(
            bytes.fromhex(value) for value in ("00000000", "0000803f", "00000040", "00004040", "00008040", "0000a040")
        )
        + b"scalar float32 \n"
        + bytes.fromhex("0000c03f")
    )
    assert fingerprint(ARRAYS) == f"sha256:{hashlib.sha256(described).hexdigest()}"


def test_it_is_what_it_always_was():
    assert fingerprint(ARRAYS) == "sha256:0c1dc0541a530c007620197e97482af5a48e838585d841a06f68731b82accc88"
    assert fingerprint({}) == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


B = ARRAYS["b"]

DIFFERENT: dict[str, dict[str, np.ndarray]] = {
    "another name": {"c" if name == "b" else name: array for name, array in ARRAYS.items()},
    "names exchanged": {"a": ARRAYS["b"], "b": ARRAYS["a"], "scalar": ARRAYS["scalar"]},
    "one array less": {"a": ARRAYS["a"], "b": B},
    "one more, empty": ARRAYS | {"empty": np.zeros(0, np.float32)},
    "another dtype, same bytes": with_b(B.view(np.int32)),
    "another dtype, same values": with_b(B.astype(np.float64)),
    "another shape, same bytes": with_b(B.reshape(3, 2)),
    "one dimension more": with_b(B[None]),
    "transposed": with_b(B.T),
    "scalar as a vector": ARRAYS | {"scalar": ARRAYS["scalar"][None]},
    "negative zero": with_b(np.copysign(B, np.where(B == 0, -1, 1)).astype(np.float32)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_it_differs_for(name: str):
    assert fingerprint(DIFFERENT[name]) != fingerprint(ARRAYS)


def test_it_tells_all_of_these_apart():
    assert len({fingerprint(arrays) for arrays in DIFFERENT.values()}) == len(DIFFERENT)


@given(position=st.integers(0, 5), bit=st.integers(0, 31))
def test_every_bit_counts(position: int, bit: int):
    changed = B.copy()
    changed.view(np.uint32).ravel()[position] ^= np.uint32(1 << bit)
    assert fingerprint(with_b(changed)) != fingerprint(ARRAYS)


def test_the_payload_of_a_nan_counts():
    quiet, other = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert fingerprint({"a": quiet}) != fingerprint({"a": other})
    assert fingerprint({"a": quiet}) == fingerprint({"a": quiet.copy()})


def strided(array: np.ndarray) -> np.ndarray:
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


SAME = {
    "Fortran order": np.asfortranarray(B),
    "big-endian": B.astype(">f4"),
    "little-endian": B.astype("<f4"),
    "a strided view": strided(B),
    "a reversed view": B[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("name", SAME)
def test_it_does_not_depend_on_memory(name: str):
    assert fingerprint(with_b(SAME[name])) == fingerprint(ARRAYS)


def test_it_does_not_depend_on_the_order_of_the_names():
    assert fingerprint(dict(reversed(ARRAYS.items()))) == fingerprint(ARRAYS)


@given(arrays_of.arrays(arrays_of.scalar_dtypes(), arrays_of.array_shapes(min_dims=0, min_side=0)))
def test_it_holds_for_any_array(array: np.ndarray):
    assert fingerprint({"x": array}) == fingerprint({"x": np.array(array, order="F")})
    assert fingerprint({"x": array}) == fingerprint({"x": array.astype(array.dtype.newbyteorder())})


# --- weights --------------------------------------------------------------------------------------------------------


def test_weights_have_the_fingerprint_of_their_names_and_arrays() -> None:
    assert weights_fingerprint(ARRAYS) == fingerprint(ARRAYS)
    nested = {"layers": [{"kernel": ARRAYS["b"]}, (ARRAYS["a"],)]}
    assert weights_fingerprint(nested) == fingerprint({"layers.0.kernel": ARRAYS["b"], "layers.1.0": ARRAYS["a"]})
    assert weights_fingerprint({"b": B.T}) == fingerprint({"b": B.T.copy()}) != fingerprint({"b": B})


def test_two_weights_of_one_name_both_count() -> None:
    one, two = ({"a.b": ARRAYS["a"], "a": {"b": array}} for array in (B, B + 1))
    assert weights_fingerprint(one) != weights_fingerprint(two)
    assert weights_fingerprint(one) == fingerprint({"a.b": ARRAYS["a"], "a.b 2": B})


@pytest.mark.parametrize("value", [3, "text", None, np.array([object()])])
def test_a_weight_that_is_no_array_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"w, of type \w+, is no dense array that is whole in this process"):
        weights_fingerprint({"w": value})
    with pytest.raises(ValueError, match="dict has no weights"):
        weights_fingerprint({})


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
def test_models_of_each_framework(framework: str) -> None:
    assert program(framework, f"weights_{framework}.py").splitlines()[-1] == "the same"
