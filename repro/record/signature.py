"""Signature of a record with the user's own key.

`compare --narrow` runs what a record names: what carries this signature, this user has recorded himself. The key is a file
that nobody else can read, made when the first record is written. It never leaves the machine, so that records of other
users and other machines, and old ones, are a stranger's.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

SIGNATURE = "signature"
"""The key of record.json that holds it: the HMAC-SHA256 of all else, as JSON with sorted keys and no spaces."""
PURPOSE = b"repro record\n"  # before what is signed, so that no signature of another kind of file can be one
BYTES = 32


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """The content of record.json with its signature; without one where no key can be kept."""
    key = _key() or _made()
    return content if key is None else content | {SIGNATURE: _signature(key, content)}


def is_own(content: Any) -> bool:
    """True if this user recorded it, with the key on this machine."""
    given = content.get(SIGNATURE) if isinstance(content, dict) else None
    key = _key()
    if not isinstance(given, str) or key is None:
        return False
    return hmac.compare_digest(given.encode(errors="replace"), _signature(key, content).encode())


def place() -> Path:
    """The key's file. RuntimeError where this user has no home."""
    folder = os.environ.get("XDG_DATA_HOME", "")
    return (Path(folder) if os.path.isabs(folder) else Path.home() / ".local" / "share") / "repro" / "key"


def _signature(key: bytes, content: dict[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != SIGNATURE}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, PURPOSE + text.encode(), hashlib.sha256).hexdigest()


def _key() -> bytes | None:
    """The key, if it is there, is ours, and nobody else can read it."""
    try:
        with open(
            place(), "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        ) as file:
            status = os.fstat(file.fileno())
            private = stat.S_ISREG(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
            key = file.read(BYTES + 1) if private and status.st_uid == os.geteuid() else b""
    except (OSError, RuntimeError):
        return None
    return key if len(key) == BYTES else None


def _made() -> bytes | None:
    """A new key, or the one that another process has made meanwhile."""
    try:
        path = place()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(secrets.token_bytes(BYTES))
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)  # whole, and never over one that is there
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError:
        pass
    except (OSError, RuntimeError):
        return None
    return _key()
