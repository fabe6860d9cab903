"""SHA-256 of several arrays, at the same time on all cores.

The threads end before the arrays are given back to the program: it may change them in place. None is kept for the next
step, so none is there when the program forks or ends.
"""

import hashlib
import os
import threading
from typing import Any, Optional

LARGE = 1 << 19  # bytes: hashing fewer takes about as long as starting a thread
MOST = 16  # threads

Parts = tuple[bytes, Any]  # the first line, and the bytes that follow it


def digests(arrays: list[Parts]) -> list[str]:
    """The SHA-256 of each array, in hexadecimal."""
    threads = min(len(arrays), sum([len(content) for _, content in arrays]) // LARGE, MOST)
    threads = min(threads, _cores()) if threads > 1 else 1
    return _Shared(arrays).run(threads) if threads > 1 else [digest(*parts) for parts in arrays]


def digest(head: bytes, content: Any) -> str:
    sha = hashlib.sha256(head)
    sha.update(content)
    return sha.hexdigest()


def _cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class _Shared:
    """Arrays that threads share: each takes the largest that is left."""

    def __init__(self, arrays: list[Parts]):
        self.arrays = arrays
        self.left = sorted(range(len(arrays)), key=lambda place: len(arrays[place][1]))
        self.codes = [""] * len(arrays)
        self.error: Optional[Exception] = None

    def run(self, threads: int) -> list[str]:
        helpers: list[threading.Thread] = []
        try:
            for _ in range(threads - 1):
                helper = threading.Thread(target=self.work, name="repro", daemon=True)
                helper.start()
                helpers.append(helper)
        except RuntimeError:  # no more threads, as at the end of the program: this one hashes all that is left
            pass
        try:
            self.work()
        finally:  # also if a signal's handler of the program has raised
            self.left.clear()
            for helper in helpers:
                helper.join()
        if self.error is not None:
            raise self.error
        return self.codes

    def work(self) -> None:
        try:
            while self.left:
                place = self.left.pop()
                self.codes[place] = digest(*self.arrays[place])
        except IndexError:  # another thread has taken the last one
            pass
        except Exception as error:
            self.error = error
