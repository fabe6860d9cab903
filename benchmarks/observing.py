"""The cost of observing: trainings with the observer and without, one after another.

    .venv/pytorch/bin/python -m benchmarks.observing gpt --threads=1 --steps=20 --pairs=5
    .venv/jax/bin/python -m benchmarks.observing flax --threads=1 --steps=500

prints how many times as long the steps after the warm-up take with `repro record`, and how many times as much CPU time
they take: the median and the range of the pairs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = {"mlp": "pytorch", "resnet": "pytorch", "gpt": "pytorch", "fit": "tensorflow", "flax": "jax"}


def seconds(command: list[str], record: bool) -> tuple[float, float]:
    """The seconds of the steps, and of CPU time, with the observer or without."""
    with tempfile.TemporaryDirectory() as folder:
        before = [sys.executable, "-m", "repro", "record", "--to", f"{folder}/record", "--"] if record else []
        printed = subprocess.run([*before, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    measured = json.loads(printed.splitlines()[-1])
    return measured["seconds"], measured["cpu"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=MODULES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    module = f"benchmarks.observed_{MODULES[given.name]}"
    command = [sys.executable, "-m", module, given.name, f"--threads={given.threads}", f"--steps={given.steps}"]
    pairs = [(seconds(command, record=False), seconds(command, record=True)) for _ in range(given.pairs)]
    step = statistics.median(plain[0] for plain, _ in pairs) / given.steps
    print(f"{given.name}, {given.threads} threads, {os.cpu_count()} cores: {step * 1000:.1f} ms for a step")
    for place, what in enumerate(("time", "CPU time")):
        ratios = sorted(observed[place] / plain[place] for plain, observed in pairs)
        print(f"{what} with --every 1: {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]")


if __name__ == "__main__":
    main()
