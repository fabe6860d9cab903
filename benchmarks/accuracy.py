"""Data and tables of the comparisons of accuracy.

The images are those of Fashion-MNIST, in its four files; the text is that of Python's own documentation, as
`help("topics")` shows it.
"""

import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

SEEDS, STEPS, BATCH, CONTEXT, TESTED = 5, 150, 32, 64, 1000
KINDS = ("float32", "portable")
UNITS = {"images": "% right", "text": "bits for each character"}

Batch = tuple[np.ndarray, np.ndarray]


@cache
def images(folder: Path, part: str) -> Batch:
    """[N, 28, 28] and their classes."""

    def read(name: str) -> np.ndarray:
        content = gzip.decompress((folder / f"{part}-{name}-ubyte.gz").read_bytes())
        shape = struct.unpack(f">{content[3]}I", content[4 : 4 + 4 * content[3]])
        return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)

    pixels = read("images-idx3").astype(np.float32) / 255 - np.float32(0.5)
    return pixels * 2, read("labels-idx1").astype(np.int64)


@cache
def text(part: str) -> np.ndarray:
    """ASCII characters; the last tenth is for tests."""
    characters = np.frombuffer("\n".join(topics.values()).encode("ascii", "ignore"), np.uint8).astype(np.int64)
    cut = len(characters) * 9 // 10
    return characters[:cut] if part == "train" else characters[cut:]


def windows(characters: np.ndarray, starts: np.ndarray) -> Batch:
    """Characters [N, CONTEXT], and the next ones."""
    result = characters[starts[:, None] + np.arange(CONTEXT + 1)]
    return result[:, :-1], result[:, 1:]


def batches(data: str, folder: Path, draw: Callable[[int], np.ndarray]) -> list[Batch]:
    """Those of a training; `draw` gives random numbers [STEPS, BATCH] below its argument."""
    if data == "images":
        x, y = images(folder, "train")
        return [(x[index], y[index]) for index in draw(len(x))]
    return [windows(text("train"), starts) for starts in draw(len(text("train")) - CONTEXT - 1)]


def test_data(data: str, folder: Path) -> Batch:
    if data == "images":
        x, y = images(folder, "t10k")
        return x[:TESTED], y[:TESTED]
    return windows(text("test"), np.arange(0, 64 * 500, 500))


def header(framework: str) -> str:
    return f"| network | reached | {framework}, float32 | portable | difference of the means |\n|---|---|---|---|---|"


def row(name: str, data: str, own: list[float], portable: list[float]) -> str:
    """A row of the table: the mean and deviation over the seeds."""
    values = (f"{statistics.mean(each):.2f} ± {statistics.stdev(each):.2f}" for each in (own, portable))
    return (
        f"| {name} | {UNITS[data]} | {' | '.join(values)} | {statistics.mean(portable) - statistics.mean(own):+.2f} |"
    )


Training = Callable[[str, int, list[Batch], Batch], float]
"""Of a network by name, a seed, batches and test data: what is reached."""


def main(framework: str, networks: dict[str, str], train: Training, enable: Callable[[], object]) -> None:
    """The table of networks, each with the kind of its data; each kind of numbers has a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("network", nargs="*", default=list(networks))
    parser.add_argument("--only", choices=KINDS, help="print what each seed reaches, in this process")
    options = parser.parse_args()
    if options.only:
        if options.only == "portable":
            enable()
        print(json.dumps(_reached(options.network[0], networks, train, options.folder)))
        return
    print(header(framework), flush=True)
    for name in options.network:
        results = [_process([str(options.folder), name, f"--only={kind}"]) for kind in KINDS]
        print(row(name, networks[name], *results), flush=True)


def _reached(name: str, networks: dict[str, str], train: Training, folder: Path) -> list[float]:
    results = []
    for seed in range(SEEDS):
        generator = np.random.default_rng(1000 + seed)
        given = batches(networks[name], folder, lambda high: generator.integers(high, size=(STEPS, BATCH)))  # noqa: B023
        results.append(train(name, seed, given, test_data(networks[name], folder)))
        print(f"{name}, seed {seed}: {results[-1]:.3f}", file=sys.stderr, flush=True)
    return results


def _process(arguments: Collection[str]) -> list[float]:
    """The same in a process of one thread."""
    command = [sys.executable, "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *arguments]
    environment = os.environ | {"PJRT_NPROC": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])
