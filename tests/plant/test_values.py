"""First values in files."""

import os
from pathlib import Path

import pytest

from repro.plant import controls, generators, values
from repro.plant.controls import Control, Part
from repro.plant.values import Array

ITEMS = {
    "moving": Array("float32", (2,), bytes(range(8))),
    "zeros": Array("float64", (2, 2), bytes(32)),
    "nothing": Array("float32", (0, 3), b""),
    "scalar": Array("int64", (), bytes(range(8))),
    "lr": 0.1,
    "lists": [1, [2, None]],
}


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    values.Writer(str(tmp_path), True).add("step 0", [("part", ITEMS)])
    assert values.read(str(tmp_path), "step 0", "part") == ITEMS
    assert values.read(str(tmp_path), "step 1", "part") is None
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == ["1.bin"]  # zeros take no file


def test_a_digest_is_of_dtype_shape_and_bytes() -> None:
    one = Array("float32", (2,), bytes(8))
    others = [one._replace(dtype="int32"), one._replace(shape=(1, 2)), one._replace(content=bytes(7) + b"1")]
    assert len({values.digest({"a": value}) for value in (one, *others)}) == 4
    assert values.digest({"a": one}) == values.digest({"a": Array("float32", (2,), bytes(8))})


def test_what_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "LARGEST", 7)
    values.Writer(str(tmp_path), True).add("step 0", [("part", ITEMS)])
    read = values.read(str(tmp_path), "step 0", "part")
    assert read is not None and ITEMS.keys() - read.keys() == {"moving"}


def test_a_part_is_put_back_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "steps").mkdir()
    monkeypatch.setenv("REPRO_OBSERVE", str(tmp_path))
    rates = {"lr": 0.1}
    part = Part(lambda: dict(rates), rates.update)
    Control(controls.SAVE, str(tmp_path)).meet("step 0", {"rate": part, "other": part})
    rates["lr"] = 0.01
    Control(controls.PLANT, str(tmp_path), "another").meet("step 0", {"rate": part})
    assert rates["lr"] == 0.01 and not (tmp_path / "steps" / controls.PLANTED).exists()
    Control(controls.PLANT, str(tmp_path), "rate").meet("step 0", {"rate": part})
    assert rates["lr"] == 0.1 and (tmp_path / "steps" / controls.PLANTED).read_text() == "step 0\n"


def test_of_two_processes_none_is_taken_for_the_other(tmp_path: Path) -> None:
    part = {"part": Part(lambda: {"n": 1}, lambda items: None)}
    for _ in range(2):
        Control(controls.SAVE, str(tmp_path)).meet("step 0", part)
    assert (tmp_path / "several").exists()


def test_a_fork_of_the_process_meets_no_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = Control(controls.SAVE, str(tmp_path))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not control.is_first("loader")


def test_generators_continue_from_their_first_state(tmp_path: Path) -> None:
    import random

    numpy = pytest.importorskip("numpy")
    own, python = numpy.random.default_rng(3), random.Random(4)
    old = numpy.random.RandomState(5)
    draws = {
        "generator `python`": random.random,
        "generator `numpy`": numpy.random.normal,
        "the program's generator of NumPy": own.normal,
        "the program's `RandomState`": old.normal,
        "the program's `random.Random`": python.random,
    }
    random.random()
    numpy.random.normal()
    parts = generators.parts()
    Control(controls.SAVE, str(tmp_path)).meet("step 0", parts)
    drawn = {name: draw() for name, draw in draws.items()}
    for name, draw in draws.items():
        if name in parts:  # another test's object may be of the same kind
            Control(controls.PLANT, str(tmp_path), name).meet("step 0", parts)
            assert draw() == drawn[name], name
            assert draw() != drawn[name], name
    assert {"generator `python`", "generator `numpy`"} <= parts.keys()
