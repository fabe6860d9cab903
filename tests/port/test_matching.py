"""Which weights of two frameworks belong together, and in which layout."""

from pathlib import Path

import numpy as np
import pytest

from repro.errors import UsageError
from repro.port import layouts
from repro.port.matching import Matcher, Matching
from repro.port.port import read_pairs
from repro.port.side import Arrays, Side
from support.ports import JAX, KERAS, TORCH, Written, compared, drawn


def side(
    folder: Path, frameworks: dict[str, str], letter: str, weights: Arrays, layers: dict[str, str] | None = None
) -> Side:
    """A side with these weights, whose layers are called in this order: name and class."""
    written = Written(frameworks, weights, {})
    for name, kind in (layers or {}).items():
        written.call(name, kind, np.zeros(3), np.zeros(3))
    return Side(written.at(folder / letter), letter)


def matched(
    folder: Path, ours: Arrays, theirs: Arrays, layers: tuple[dict[str, str], dict[str, str]] = ({}, {})
) -> Matching:
    return Matcher(side(folder, TORCH, "A", ours, layers[0]), side(folder, JAX, "B", theirs, layers[1]), {}).match()


def lines(matching: Matching) -> list[str]:
    return [str(match) for match in matching.matches]


KERNEL, IMAGE = drawn(6, 4), drawn(5, 3, 2, 2)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (KERNEL, KERNEL, ""),
        (KERNEL, KERNEL.T, "transposed"),
        (IMAGE, IMAGE.transpose(2, 3, 1, 0), "axes 3 2 0 1"),
        (KERNEL.reshape(6, 2, 2), KERNEL.T, "reshaped"),
        (KERNEL, np.concatenate([KERNEL[3:], KERNEL[:3]]), "blocks 1 0 of axis 0"),
        (KERNEL, KERNEL.ravel()[::-1].reshape(6, 4), "in another order"),
    ],
)
def test_the_layout_of_one_array_in_another(ours: np.ndarray, theirs: np.ndarray, words: str) -> None:
    layout = layouts.by_values(ours, theirs)
    assert layout is not None
    assert np.array_equal(layout(theirs), ours)
    assert words in layout.words


def test_arrays_of_other_values_have_no_layout() -> None:
    assert layouts.by_values(KERNEL, KERNEL + 1) is None


def test_weights_with_other_names_and_another_order(tmp_path: Path) -> None:
    """JAX sorts names, so their order says nothing."""
    first, second = drawn(8, 8, seed=1), drawn(8, 8, seed=2)
    matching = matched(tmp_path, {"b.weight": first, "a.weight": second}, {"x.kernel": second.T, "y.kernel": first.T})
    assert {(match.a, match.b) for match in matching.matches} == {
        (("b.weight",), ("y.kernel",)),
        (("a.weight",), ("x.kernel",)),
    }


def test_biases_that_are_zero_follow_their_layer(tmp_path: Path) -> None:
    ours = {
        "one.weight": drawn(8, 8, seed=1),
        "one.bias": np.zeros(8),
        "two.weight": drawn(8, 8, seed=2),
        "two.bias": np.zeros(8),
    }
    theirs = {
        "a.bias": np.zeros(8),
        "a.kernel": ours["two.weight"].T,
        "b.bias": np.zeros(8),
        "b.kernel": ours["one.weight"].T,
    }
    layers = {"one": "Linear", "two": "Linear"}, {"a": "Dense", "b": "Dense"}
    names = {(match.a, match.b) for match in matched(tmp_path, ours, theirs, layers).matches}
    assert (("one.bias",), ("b.bias",)) in names
    assert (("two.bias",), ("a.bias",)) in names


def test_query_key_and_value_in_one(tmp_path: Path) -> None:
    """And their biases, which are zero: each unit's gradient is found again."""
    parts = {f"{name}.weight": drawn(4, 8, seed=n) for n, name in enumerate("qkv")}
    biases = {f"{name}.bias": np.zeros(4) for name in "qkv"}
    fused = np.concatenate([parts[f"{name}.weight"] for name in "kqv"]).T
    ours = {name: array for both in zip(parts.items(), biases.items(), strict=True) for name, array in both}
    layers = dict.fromkeys("qkv", "Linear"), {"qkv": "Dense"}
    matching = matched(tmp_path, ours, {"qkv.bias": np.zeros(12), "qkv.kernel": fused}, layers)
    assert {match.a for match in matching.matches} == {
        ("q.weight", "k.weight", "v.weight"),
        ("q.bias", "k.bias", "v.bias"),
    }
    bias = matching.of("k.bias")
    assert bias is not None
    units = np.arange(12.0)
    both = bias.arrays({"q.bias": units[:4], "k.bias": units[4:8], "v.bias": units[8:]}, {"qkv.bias": units})
    assert both is not None
    assert np.array_equal(both[1], [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11])


def test_two_biases_of_which_the_sum_is_one(tmp_path: Path) -> None:
    ours = {"lstm.bias_ih_l0": drawn(12, seed=1), "lstm.bias_hh_l0": drawn(12, seed=2)}
    total = (ours["lstm.bias_ih_l0"].astype(np.float32) + ours["lstm.bias_hh_l0"].astype(np.float32)).astype(np.float64)
    (match,) = matched(tmp_path, ours, {"lstm.bias": total}).matches
    assert match.summed
    assert match.names == ("lstm.bias_ih_l0 + lstm.bias_hh_l0", "lstm.bias")


def test_weights_that_were_drawn_anew_are_matched_by_the_order_of_calls(tmp_path: Path) -> None:
    ours = {"a.weight": drawn(8, 4, seed=2), "z.weight": drawn(8, 4, seed=1)}
    theirs = {"x.kernel": drawn(4, 8, seed=3), "y.kernel": drawn(4, 8, seed=4)}
    layers = {"z": "Linear", "a": "Linear"}, {"x": "Dense", "y": "Dense"}
    assert lines(matched(tmp_path, ours, theirs, layers)) == [
        "z.weight = x.kernel (transposed; by shape and order)",
        "a.weight = y.kernel (transposed; by shape and order)",
    ]


def test_square_weights_that_were_drawn_anew_have_the_layout_of_their_libraries(tmp_path: Path) -> None:
    (match,) = matched(tmp_path, {"a.weight": drawn(8, 8, seed=1)}, {"a.kernel": drawn(8, 8, seed=2)}).matches
    assert match.layout.words == "transposed"


def test_what_is_ambiguous_is_asked_for(tmp_path: Path) -> None:
    matching = matched(
        tmp_path, {"a.weight": drawn(8, 4, seed=1)}, {"x.kernel": drawn(4, 8, seed=2), "y.kernel": drawn(4, 8, seed=3)}
    )
    assert matching.matches == []
    assert matching.ambiguous == [("a.weight", ["x.kernel", "y.kernel"])]


def test_a_file_of_pairs_decides(tmp_path: Path) -> None:
    a = Written(TORCH, {"a.weight": drawn(8, 4, seed=1)}, {})
    b = Written(KERAS, {"x.kernel": drawn(4, 8, seed=2), "y.kernel": drawn(4, 8, seed=3)}, {})
    port = compared(tmp_path, a, b, "# the second one\na.weight = y.kernel\n")
    assert [(match.a, match.b) for match in port.matching.matches] == [(("a.weight",), ("y.kernel",))]
    assert port.matching.ambiguous == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.weight y.kernel", "line 1: `a.weight y.kernel` is no pair"),
        ("\nb.weight = y.kernel", "line 2: `b.weight` is no weight of A"),
        ("a.weight = z", "line 1: `z` is no weight of B"),
        ("a.weight = bias", "line 1: their sizes differ"),
    ],
)
def test_a_file_of_pairs_that_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    a = side(tmp_path, TORCH, "A", {"a.weight": drawn(8, 4)})
    b = side(tmp_path, JAX, "B", {"y.kernel": drawn(4, 8), "bias": np.zeros(3)})
    (tmp_path / "pairs").write_text(text)
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        read_pairs(tmp_path / "pairs", a, b)


def test_a_file_of_pairs_that_is_not_there(tmp_path: Path) -> None:
    a, b = (side(tmp_path, TORCH, letter, {"w": drawn(8, 4)}) for letter in "AB")
    with pytest.raises(UsageError, match="No such file"):
        read_pairs(tmp_path / "none", a, b)
