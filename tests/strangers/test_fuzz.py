"""Whatever a file holds: one line, no traceback, no hang, and no character that a terminal would obey.

`FUZZ=5000 pytest tests/strangers/test_fuzz.py -k long` takes as many files for each reader.
"""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import mutations
from support.mutations import Files
from support.readers import READERS, UNEXPECTED, Reader
from support.runs import HANG

FEW, MANY = 12, int(os.environ.get("FUZZ", "250"))
MEMORY = 3 << 30  # bytes beside what is there before
QUIET = settings(deadline=None, suppress_health_check=[*HealthCheck], database=None)
CODES = range(5)


@pytest.fixture(params=READERS, ids=lambda reader: reader.name)
def reader(request: pytest.FixtureRequest) -> Reader:
    return request.param


@pytest.fixture
def folder(reader: Reader, tmp_path: Path) -> Iterator[Path]:
    """A valid example; what hangs, or takes too much memory, ends."""
    reader.make(tmp_path)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail(f"not done in {HANG} s"))
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGALRM, before)


def files_of(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def changed(random: Random, reader: Reader, whole: Files) -> Files:
    """The reader's file, or those that belong to it, as a stranger may have written them."""
    content = whole[reader.file]
    if random.random() < 0.25:
        return {reader.file: mutations.of_bytes(random, content)}
    if reader.name == "kept":
        return mutations.of_kept(random, whole, reader.file)
    if reader.file.endswith(".safetensors"):
        return {reader.file: mutations.of_checkpoint(random, content)}
    if reader.name in ("results", "benchmark"):
        return {reader.file: mutations.of_json(random, content, mutations.sealed)}
    if reader.file.endswith(".jsonl"):
        return {reader.file: mutations.of_lines(random, content)}
    if reader.file.endswith(".json"):
        return {reader.file: mutations.of_json(random, content)}
    if reader.file.endswith(".yaml"):
        return {reader.file: mutations.of_yaml(random, content)}
    return {reader.file: mutations.of_bytes(random, content)}


def check(reader: Reader, folder: Path, whole: Files, random: Random) -> None:
    """Changes the example, has it read, and puts it back."""
    new = changed(random, reader, whole)
    for name, content in new.items():
        (folder / name).write_bytes(content)
    if reader.name in ("record", "steps", "kept") and random.random() < 0.8:
        mutations.refitted(folder, new)
    signal.alarm(HANG)
    try:
        told = reader(folder)
    finally:
        signal.alarm(0)
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            if str(path.relative_to(folder)) not in whole and "report" not in path.parts:
                path.unlink()
        for name, content in whole.items():
            if name in new or name == "a/record.json" or not (folder / name).exists():
                (folder / name).write_bytes(content)
    assert told.code in CODES and UNEXPECTED not in told.text and "Traceback" not in told.text, told.text[-2000:]
    assert told.code not in (1, 2) or told.text.splitlines()[-1].startswith("error: ")
    pages = [path.read_text() for path in folder.glob("report/*.[hm]*") if not told.code]
    for text in (told.text, *pages):
        assert all(line.isprintable() for line in text.split("\n")), [
            line for line in text.split("\n") if not line.isprintable()
        ]


def test_a_valid_file_is_read(reader: Reader, folder: Path) -> None:
    told = reader(folder)
    assert told.code == {"record": 2, "cube": 0}.get(reader.name, told.code) and told.code in (0, 2, 3), told.text
    assert told.code != 2 or "you have not recorded" in told.text


def test_some_files(reader: Reader, folder: Path) -> None:
    whole = files_of(folder)

    @settings(QUIET, max_examples=FEW)
    @given(st.randoms(use_true_random=False))
    def every(random: Random) -> None:
        check(reader, folder, whole, random)

    every()


@pytest.mark.slow
def test_a_long_row_of_files(reader: Reader, folder: Path) -> None:
    whole = files_of(folder)

    @settings(QUIET, max_examples=MANY)
    @given(st.integers(0, 2**64))
    def every(seed: int) -> None:
        check(reader, folder, whole, Random(seed))

    every()
