"""Fits of scikit-learn and rounds of boosting, seen without a change.

The libraries are stand-ins, with the methods that are hooked.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy
import pytest

from support.observed import HERE, SCRIPTS, notes, observed, steps

X, Y = numpy.arange(12.0).reshape(4, 3), numpy.arange(4)


def sha(head: str, content: Any) -> str:
    return hashlib.sha256(f"{head}\n".encode() + content).hexdigest()


def written(folder: Path, name: str, **env: str) -> list[dict[str, Any]]:
    return observed(HERE, folder, str(SCRIPTS / "estimators" / name), **env)[1]


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return written(tmp_path_factory.mktemp("fits"), "fits.py")


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return written(tmp_path_factory.mktemp("rounds"), "rounds.py")


def test_only_outermost_fits_that_end_are_steps(fits: list[dict[str, Any]]) -> None:
    seen = steps(fits)
    assert list(seen) == [0, 1, 2, 3, 4]
    assert seen[0]["generator"] == {}  # what `rich` draws while it is imported is not the program's
    assert seen[1]["batch"] == {"x": sha("float64 4,3", X.tobytes()), "y": sha("int64 4", Y.tobytes())}
    assert set(seen[1]["weights"]) == {"0.estimators_.0", "0.estimators_.1"}
    assert seen[1]["weights"]["0.estimators_.0"] != seen[1]["weights"]["0.estimators_.1"]
    assert any("in another thread" in note for note in notes(fits))


def test_the_numbers_of_inner_estimators_are_scalars(fits: list[dict[str, Any]]) -> None:
    assert [line.get("scalars") for line in fits if line.get("step") == 1] == [{"0.estimator.rate": "0.25"}]


def test_partial_fit_moves_weights_and_the_generator_before_it(fits: list[dict[str, Any]]) -> None:
    seen = steps(fits)
    assert seen[2]["weights"]["1.mean_"] != seen[3]["weights"]["1.mean_"]
    assert seen[2]["generator"]["1.random_state"] != seen[3]["generator"]["1.random_state"]


def test_what_has_no_hash_is_said(fits: list[dict[str, Any]]) -> None:
    (unseen,) = [line for line in fits if "unseen" in line]
    assert unseen["unseen"] == 4 and "2.lines_, of type generator, is not hashed" in unseen["text"]


def test_times_and_the_bytes_between_fields_are_left_out(fits: list[dict[str, Any]], tmp_path: Path) -> None:
    assert steps(written(tmp_path, "fits.py")) == steps(fits)


def test_each_round_is_a_step(rounds: list[dict[str, Any]]) -> None:
    seen = steps(rounds)
    assert list(seen) == [0, 1, 2, 3, 4, 5]
    assert [seen[n]["weights"] for n in (1, 2, 3, 4)] == [
        {"0.trees": sha("bytes ", repr([X.mean()]).encode())},
        {"0.trees": sha("bytes ", repr([X.mean(), X.mean() + 1]).encode())},
        {"1.trees": sha("bytes ", repr([0.5, X.mean() + 2]).encode())},
        {"2.trees": sha("str ", b"[5.5]")},
    ]
    assert seen[3]["initial weights"] == {"1.trees": sha("bytes ", b"[0.5]")}


def test_a_copy_that_goes_on_is_the_same_booster(rounds: list[dict[str, Any]]) -> None:
    seen = steps(rounds)
    assert set(seen[5]["weights"]) == {"0.trees"} and "initial weights" not in seen[5]


def test_data_is_hashed_before_the_library_has_it(rounds: list[dict[str, Any]]) -> None:
    seen = steps(rounds)
    x, y = sha("float64 4,3", X.tobytes()), sha("int64 4", Y.tobytes())
    assert [seen[n]["batch"] for n in (1, 4)] == [{"data": x, "label": y}, {"data": x}]
    assert seen[3]["batch"]["data"] == sha("float64 4,3", (X + 1).tobytes())


def test_only_due_rounds_are_hashed(tmp_path: Path) -> None:
    assert list(steps(written(tmp_path, "rounds.py", REPRO_OBSERVE_EVERY="2"))) == [0, 1, 2, 4]
