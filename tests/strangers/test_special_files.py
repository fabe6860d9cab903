"""Pipes, devices, folders, sockets, links and files without end in the place of files that are read."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repro import files
from support.readers import READERS, UNEXPECTED, Reader
from support.runs import HANG

ENDLESS = 1 << 42  # bytes of a file with a hole
HARMLESS = {"kept", "last state", "superseded"}  # what is not read is as if it were not there


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(f"{path}.pipe")
    path.symlink_to(f"{path}.pipe")


def endless(path: Path) -> None:
    path.write_bytes(b"[")
    os.truncate(path, ENDLESS)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "link to a pipe": link_to_a_pipe,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "folder": Path.mkdir,
    "socket": listening,
    "circle": lambda path: path.symlink_to(path),
    "endless": endless,
}


@pytest.fixture
def limit() -> Iterator[None]:
    """Ends what hangs."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"not done in {HANG} s"))
    signal.alarm(HANG)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_one_line(reader: Reader, special: str, tmp_path: Path) -> None:
    reader.make(tmp_path)
    path = tmp_path / reader.file
    path.unlink()
    SPECIAL[special](path)
    told = reader(tmp_path)
    assert UNEXPECTED not in told.text and "Traceback" not in told.text
    if not told.code or (told.code == 3 and reader.name in HARMLESS):
        assert reader.name in HARMLESS
        return
    error = told.text.splitlines()[-1]
    assert told.code in (1, 2) and error.startswith("error: ") and "; " in error
    assert str(path) in error or reader.name == "steps" or special == "circle"


@pytest.mark.usefixtures("limit")
def test_the_limit_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * 100)
    assert files.read(path, 100) == b"x" * 100
    with pytest.raises(OSError, match="it is larger than 99 bytes, the most that is read"):
        files.read(path, 99)
    path.write_bytes(b"short\n" + b"x" * 100)
    with pytest.raises(OSError, match="line 2 is larger than 99 bytes, the most that is read"):
        [*files.read_lines(path, longest=99)]
    with pytest.raises(OSError, match="it is larger than 99 bytes"):
        [*files.read_lines(path, most=99)]
