"""Facts that differ between two records, and that a rerun can set."""

from pathlib import Path

import pytest

from repro.compare import settable
from repro.compare.settable import Fact
from repro.record import record
from repro.record.injection import Portable
from support.commands import straight, write


@pytest.mark.parametrize(
    ("a", "b", "facts"),
    [
        ("python t.py --lr=1", "python t.py --lr=2", ["option --lr: --lr=1 in A, --lr=2 in B"]),
        ("python t.py --lr 1", "python t.py --lr 2", ["option --lr: --lr 1 in A, --lr 2 in B"]),
        (
            "t --lr 1 --v",
            "t --v --lr=2 x=3",
            ["option --lr: --lr 1 in A, --lr=2 in B", "option x: none in A, x=3 in B"],
        ),
        ("t lr=1 seed=2", "t seed=3 lr=1", ["option seed: seed=2 in A, seed=3 in B"]),
        ("t -a -b --c=1", "t -b", ["option -a: -a in A, none in B", "option --c: --c=1 in A, none in B"]),
        ("python t", "python -u t --x 1", ["option -u: none in A, -u in B", "option --x: none in A, --x 1 in B"]),
        ("t one", "t two", ["word: one in A, two in B"]),
        ("t --lr=1", "t --lr=1", []),
        ("t x x", "t x", ["word: x in A, none in B"]),
    ],
)
def test_options_that_differ(a: str, b: str, facts: list[str]) -> None:
    words = settable.words(a.split(), b.split())
    assert [str(fact) for fact in words.facts] == facts
    assert words.of([]) == a.split()
    assert sorted(words.of(words.facts)) == sorted(b.split())


def test_a_command_with_some_options_as_in_b() -> None:
    words = settable.words(["t", "--lr=1", "--n", "2", "--v"], ["t", "--lr=3", "--n", "4", "--w"])
    rate, number, added, _ = words.facts
    assert words.of([rate]) == ["t", "--lr=3", "--n", "2", "--v"]
    assert words.of([number, added]) == ["t", "--lr=1", "--n", "4", "--w", "--v"]


def test_variables_that_a_rerun_does_not_set_are_none_of_the_facts(tmp_path: Path) -> None:
    sides = [
        {"OMP_NUM_THREADS": "1", "TORCH_HOME": "/x", "MKL_DYNAMIC": "a"},
        {"KERAS_BACKEND": "/tmp", "MKL_DYNAMIC": "a"},
    ]
    a, b = (
        record.read(write(tmp_path / str(n), straight(), facts={"environment": side})) for n, side in enumerate(sides)
    )
    assert settable.of_variables(a, b) == [Fact("variable", "OMP_NUM_THREADS", "1", None)]


def test_portable_numerics() -> None:
    (fact,) = settable.of_numerics(None, Portable(("linalg_svd",), "highest"))
    assert str(fact) == "portable numerics: none in A, portable --allow=linalg_svd --precision=highest in B"
    assert settable.of_numerics(None, None) == []


def test_how_values_are_shown() -> None:
    assert str(Fact("package", "numpy", "numpy==2.0", None)) == "package numpy: 2.0 in A, none in B"
    assert str(Fact("commit", "", "a" * 40, "b" * 40)) == f"commit: {'a' * 12} in A, {'b' * 12} in B"
