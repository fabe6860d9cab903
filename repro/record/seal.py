"""Seal of a process' lines: a running hash.

The observer ends each line with the SHA-256 of the seal before it and of the line's own text. So a line that was removed,
doubled or altered shows at the next one, and record.json holds the last. It is no signature: see structs.checksum().
"""

import hashlib
import re

from repro.structs import Flaw

SEAL = re.compile(rb', "seal": "([0-9a-f]{64})"\}\n')
LENGTH = 78  # bytes of it


class Chain:
    """The seal of the lines so far. Lines that an older version wrote have none of their own."""

    def __init__(self) -> None:
        self.seal = ""
        self.sealed: bool | None = None

    def add(self, line: bytes) -> None:
        """Adds a line. Raises Flaw if it does not follow from those before it."""
        own = SEAL.fullmatch(line[-LENGTH:])
        text = line[:-LENGTH] + b"}" if own else line.removesuffix(b"\n")
        self.seal = hashlib.sha256(self.seal.encode() + text).hexdigest()
        follows = self.sealed in (None, own is not None) and (own is None or own[1].decode() == self.seal)
        self.sealed = own is not None
        if not follows:
            raise Flaw("it does not follow from the lines before it: one was changed, removed or duplicated")
