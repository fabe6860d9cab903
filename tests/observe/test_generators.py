"""States of generators that a framework makes."""

from types import SimpleNamespace

import pytest

from repro.observe import generators


class Numbers(list[int]):
    """An array of TensorFlow, of whole numbers."""

    def numpy(self) -> "Numbers":
        return self

    def tolist(self) -> list[int]:
        return [*self]


class Generator:
    """One of TensorFlow, as far as it is observed."""

    def __init__(self, state: object):
        self.state = state


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> type[Generator]:
    monkeypatch.setattr(generators, "made", [])
    observed = type("Generator", (Generator,), {})
    generators.after_tensorflow_python_ops_stateful_random_ops(SimpleNamespace(Generator=observed))
    return observed


def test_each_generator_of_tensorflow_is_seen_as_long_as_it_lives(kind: type[Generator]) -> None:
    first, second = kind(Numbers([1, 2])), kind(Numbers([3]))
    before = generators.hashes()
    first.state = Numbers([1, 3])
    after = generators.hashes()
    names = "tensorflow.Generator 0", "tensorflow.Generator 1"
    assert [before[name] != after[name] for name in names] == [True, False]
    del second
    assert names[1] not in generators.hashes()


def test_a_generator_of_a_graph_has_no_state(kind: type[Generator]) -> None:
    generator = kind(object())
    assert "tensorflow.Generator 0" not in generators.hashes() and generator
