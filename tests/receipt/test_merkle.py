"""The tree over the steps is that of RFC 9162."""

import hashlib
from pathlib import Path

import pytest

from repro.receipt import merkle
from repro.record import record
from support.commands import straight, write


def by_the_text(leaves: list[bytes]) -> bytes:
    """MTH of RFC 9162, section 2.1.1, word for word, over leaves that are hashed."""
    n = len(leaves)
    if n == 1:
        return leaves[0]
    k = 1
    while k * 2 < n:
        k *= 2
    return hashlib.sha256(b"\x01" + by_the_text(leaves[:k]) + by_the_text(leaves[k:])).digest()


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 100])
def test_the_root(count: int) -> None:
    leaves = [hashlib.sha256(b"\x00" + bytes([number])).digest() for number in range(count)]
    assert merkle.node(leaves) == by_the_text(leaves)


def test_the_root_of_the_standards_test_vectors() -> None:
    """The vectors that implementations of certificate transparency share: the first leaf is empty."""
    leaf = hashlib.sha256(b"\x00").digest()
    assert merkle.node([leaf]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    both = [leaf, hashlib.sha256(b"\x00\x00").digest()]
    assert merkle.node(both).hex() == "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"


def test_a_leaf_is_all_that_a_step_computed_and_no_time(tmp_path: Path) -> None:
    same, *others = (
        record.read(write(tmp_path / str(n), straight(3, **changed)))
        for n, changed in enumerate(
            ({}, {"weights": {2: "other"}}, {"batch": {2: "other"}}, {"gradients": {3: "other"}})
        )
    )
    leaves = merkle.leaves(same)
    assert len(leaves) == 4  # the one before the first step, too
    assert [[a != b for a, b in zip(leaves, merkle.leaves(other), strict=True)] for other in others] == [
        [False, False, True, False],
        [False, False, True, False],
        [False, False, False, True],
    ]
