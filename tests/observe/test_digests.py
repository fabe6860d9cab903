"""SHA-256 of several arrays, in several threads."""

import hashlib
import threading
from typing import Any

import pytest

from repro.observe import digests

SIZES = [digests.LARGE * number + number for number in (3, 0, 1, 2)]
ARRAYS = [(f"uint8 {size}\n".encode(), bytes([place]) * size) for place, size in enumerate(SIZES)]
ONE_BY_ONE = [hashlib.sha256(head + content).hexdigest() for head, content in ARRAYS]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads that hash, on a machine of three cores; each waits until another one has come, too."""
    threads: set[int] = set()
    together = threading.Barrier(3)
    digest = digests.digest

    def watched(head: bytes, content: Any) -> str:
        if threading.get_ident() not in threads and len(content) > digests.LARGE:
            threads.add(threading.get_ident())
            together.wait(60)
        return digest(head, content)

    monkeypatch.setattr(digests, "digest", watched)
    monkeypatch.setattr(digests, "_cores", lambda: 3)
    return threads


def test_large_arrays_are_hashed_at_the_same_time(used: set[int]) -> None:
    before = threading.active_count()
    assert digests.digests(ARRAYS) == ONE_BY_ONE
    assert len(used) == 3
    assert threading.active_count() == before  # nothing is read once the program goes on


def test_small_arrays_and_a_single_one_need_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread was started"))
    monkeypatch.setattr(digests, "_cores", lambda: 3)
    small = [(head, content[:100]) for head, content in ARRAYS]
    assert len(set(digests.digests(small))) == len(small)
    assert digests.digests(ARRAYS[:1]) == ONE_BY_ONE[:1]
    assert digests.digests([]) == []


def test_without_a_second_core_no_thread_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _: pytest.fail("a thread was started"))
    monkeypatch.setattr(digests, "_cores", lambda: 1)
    assert digests.digests(ARRAYS) == ONE_BY_ONE


def test_where_no_thread_can_be_started_all_are_hashed_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of a program, from Python 3.12 on."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(digests, "_cores", lambda: 3)
    assert digests.digests(ARRAYS) == ONE_BY_ONE


@pytest.mark.parametrize("broken", range(len(ARRAYS)))
def test_an_error_in_any_thread_is_raised(broken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never a hash that is missing."""
    digest = digests.digest

    def failing(head: bytes, content: Any) -> str:
        if head == ARRAYS[broken][0]:
            raise MemoryError("planted")
        return digest(head, content)

    monkeypatch.setattr(digests, "digest", failing)
    monkeypatch.setattr(digests, "_cores", lambda: 3)
    with pytest.raises(MemoryError, match="planted"):
        digests.digests(ARRAYS)


def test_what_a_signals_handler_raises_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    digest, main, raised = digests.digest, threading.get_ident(), threading.Event()

    def interrupted(head: bytes, content: Any) -> str:
        if threading.get_ident() == main:
            raised.set()
            raise KeyboardInterrupt
        raised.wait(60)  # the others leave an array to this thread
        return digest(head, content)

    monkeypatch.setattr(digests, "digest", interrupted)
    monkeypatch.setattr(digests, "_cores", lambda: 3)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        digests.digests(ARRAYS)
    assert threading.active_count() == before
