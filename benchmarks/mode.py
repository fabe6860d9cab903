"""Times of training steps under portable numerics beside the framework's own float32, in the three frameworks.

    .venv/dev/bin/python -m benchmarks.mode [--frameworks=...] [--networks=...] [--threads=1,2] [--narrow] [--without-llvmlite] [--rounds=3]

prints a row for each network: seconds of the framework's own step, how many times as long one takes under the mode, and
the same of the first step with what the network and compilers need before it. Each is timed in processes of its own,
which take turns; a ratio is the median of the rounds, with the least and the largest in brackets.

--narrow: as on a processor with AVX2 alone, for the framework and for the kernels of the mode.
--without-llvmlite: one column more, without the kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from repro.verify.command_questions import AVX2, THREADS

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
NETWORKS = ("ResNet-18", "GPT-2", "ViT-Tiny", "LeNet", "LSTM", "small layers")
OWN, MODE, BARE = KINDS = ("own", "mode", "without llvmlite")
WARM, SECONDS, LEAST = 3, 3.0, 8
"""Steps before those that are timed; how long these are timed for, and how many there are at least: the median counts."""

Step = Callable[[], object]
Times = tuple[float, float]
"""Of a step, and of the first one with all that comes before it, in seconds."""


def measure(networks: Mapping[str, Callable[[], Step]], enable: Callable[[], AbstractContextManager[None]]) -> None:
    """Prints the times of NETWORK of KIND, this process's arguments."""
    name, kind, narrow = sys.argv[1:]
    if kind == BARE:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]
    elif narrow and kind == MODE:
        from repro.portable.kernels import machine

        machine.limit(256)
    with nullcontext() if kind == OWN else enable():
        begun = time.perf_counter()
        step = networks[name]()
        step()
        first = time.perf_counter() - begun
        for _ in range(WARM):
            step()
        taken: list[float] = []
        while len(taken) < LEAST or sum(taken) < SECONDS:
            begun = time.perf_counter()
            step()
            taken.append(time.perf_counter() - begun)
    print(json.dumps((statistics.median(taken), first)))


def timed(framework: str, name: str, kind: str, threads: int, narrow: bool) -> Times:
    """The same in a process of its own."""
    python = Path(".venv", framework, "bin/python")
    command = [str(python), "-m", f"benchmarks.mode_{framework}", name, kind, "narrow" if narrow else ""]
    variables = dict.fromkeys(THREADS, str(threads)) | {"TF_CPP_MIN_LOG_LEVEL": "3"} | dict(AVX2 if narrow else ())
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | variables)
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def spread(numbers: list[float]) -> str:
    return f"{statistics.median(numbers):.2f} [{min(numbers):.2f}, {max(numbers):.2f}]"


def row(rounds: Mapping[str, list[Times]]) -> list[str]:
    """Of one network: its own times, then for each other kind the ratio and the first step."""
    own = rounds[OWN]
    cells = [f"{statistics.median(step for step, _ in own):.4f}", f"{statistics.median(first for _, first in own):.1f}"]
    for kind in list(rounds)[1:]:
        cells.append(spread([step / base for (step, _), (base, _) in zip(rounds[kind], own, strict=True)]))
        cells.append(f"{statistics.median(first for _, first in rounds[kind]):.1f}")
    return cells


def listed(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frameworks", type=listed, default=list(FRAMEWORKS))
    parser.add_argument("--networks", type=listed, default=list(NETWORKS))
    parser.add_argument("--threads", type=listed, default=["1", "2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--without-llvmlite", action="store_true")
    given = parser.parse_args()
    kinds = KINDS if given.without_llvmlite else KINDS[:2]
    heads = ["own step, s", "first, s"] + [head for kind in kinds[1:] for head in (f"{kind}, times", "first, s")]
    print(f"| framework | network | threads | {' | '.join(heads)} |\n|{'---|' * (3 + len(heads))}")
    for framework in given.frameworks:
        for name in given.networks:
            for threads in given.threads:
                rounds: dict[str, list[Times]] = {kind: [] for kind in kinds}
                for _ in range(given.rounds):
                    for kind in kinds:
                        rounds[kind].append(timed(framework, name, kind, int(threads), given.narrow))
                print(f"| {framework} | {name} | {threads} | {' | '.join(row(rounds))} |", flush=True)


if __name__ == "__main__":
    main()
