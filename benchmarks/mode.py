"""Times of steps under the mode beside a framework's own float32: a process for each measurement, in turns."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

KINDS = ("own", "mode")
FIRST, STEPS = 2, 10
"""Steps before those that are timed; and those, of which the median counts."""


def seconds(step: Callable[[], None]) -> tuple[float, float]:
    """Of a step and of the first one, in this process."""
    results = []
    for _ in range(FIRST + STEPS):
        begun = time.perf_counter()
        step()
        results.append(time.perf_counter() - begun)
    return sorted(results[FIRST:])[STEPS // 2], results[0]


def timed(module: str, name: str, kind: str, variables: dict[str, str]) -> tuple[float, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", module, f"--only={kind}", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | variables)
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def main(
    module: str,
    title: str,
    networks: Iterable[str],
    threads: Callable[[int], dict[str, str]],
    measure: Callable[[str, str], tuple[float, float]],
) -> None:
    """Prints the table. `threads` gives the variables of a number of threads, `measure` times a network's kind here."""
    parser = argparse.ArgumentParser()
    parser.add_argument("network", nargs="*", default=list(networks))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=KINDS, help="one measurement, in this process")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.network[0], options.only)))
        return
    print(
        f"| network | {title}'s own, s | under the mode, times | first step, s | under the mode, s |\n|---|---|---|---|---|"
    )
    for name in options.network:
        results: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        for _ in range(options.rounds):
            for kind in KINDS:
                results[kind].append(timed(module, name, kind, threads(options.threads)))
        own, mode = ([min(each) for each in zip(*results[kind], strict=True)] for kind in KINDS)
        print(f"| {name} | {own[0]:.4f} | {mode[0] / own[0]:.2f} | {own[1]:.1f} | {mode[1]:.1f} |", flush=True)
