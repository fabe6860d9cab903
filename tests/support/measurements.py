"""Makes benchmark.json as `benchmark` would write it: the samples are made up, what follows from them is computed."""

from itertools import product
from typing import Any

from repro.benchmark import speed
from repro.benchmark.cells import BASELINES
from support.results_files import FRAMEWORKS, sha256

Json = dict[str, Any]

SECONDS = {"pytorch": 2.0, "tensorflow": 1.5, "jax": 1.8}  # an epoch at batch 32, deterministic
FACTORS = {"deterministic": 1.0, "fast": 0.8, "portable": 2.5, "tutorial": 5.0, "tuned": 1.25}


def benchmark(
    numerics: tuple[str, ...] = ("deterministic", "fast", "portable", "tutorial"),
    batch_sizes: tuple[int, ...] = (32,),
    rounds: int = 5,
    noise: float = 0.01,
    slower: dict[str, float] | None = None,
    model: str = "Imaginary 9000",
    fingerprints: dict[tuple[str, int], str] | None = None,
    commit: str = "abc",
) -> Json:
    """What `benchmark` found.

    `noise` is the relative distance between a round's samples and the next one's; `slower` multiplies the times of some
    cells; `fingerprints` replaces the one of a cell in a round.
    """
    cells: dict[str, Json] = {}
    samples: list[Json] = []
    for batch_size, framework, kind in product(batch_sizes, FRAMEWORKS, numerics):
        name = f"{framework}/{kind}/cpu/{batch_size}/2/60000"
        cells[name] = {"framework": framework, "numerics": kind, "device": "cpu", "batch_size": batch_size,
                       "threads": 2, "train_samples": 60_000, "steps": 1024}  # fmt: skip
        bits = f"{kind} {batch_size}" + ("" if kind == "portable" else framework)
        for number in range(rounds):
            seconds = SECONDS[framework] * FACTORS[kind] * (16 / batch_size + 0.5) * (slower or {}).get(name, 1.0)
            mark = (fingerprints or {}).get((name, number), sha256(bits))
            samples.append(sample(name, number, seconds * (1 + noise * number), mark, kind in BASELINES))
    run = {
        "status": "done", "numerics": "deterministic", "batch_size": batch_sizes[0], "device": "cpu", "threads": 2,
        "train_samples": 60_000, "first_epoch": 3.5, "evaluation": 0.25, "fingerprint": sha256("target"),
        "epochs": [{"epoch": n, "test_accuracy": 0.95 + 0.01 * n, "end": 4.0 + 2.5 * n} for n in (1, 2, 3, 4)],
    }  # fmt: skip
    cpu = {"architecture": "x86_64", "vendor": "ImaginaryCPU", "model": model, "instruction_set": "avx512f",
           "cores": 2, "logical": 2, "usable": 2}  # fmt: skip
    return speed.concluded({
        "created": "2026-11-21T15:00:00+00:00", "seconds": 512.5, "interrupted": False, "others_busy": 0.05,
        "machine": {"cpu": cpu, "gpu": [], "platform": "Linux-6.1.0-x86_64-with-glibc2.36", "name": None},
        "source": {"commit": commit, "dirty": False},
        "settings": {"model": "lenet", "optimizer": "sgd", "dataset": "mnist", "target": 0.98, "epochs": 0.5,
                     "overrides": []},
        "energy": {"cpu": "not measured: this machine shows no RAPL counters in /sys/class/powercap"},
        "floor": [{"threads": 2, "dtype": "float32", "rates": [200e9, 155.7e9]},
                  {"threads": 2, "dtype": "float64", "rates": [100e9]}],
        "imports": {name: [1.0, 1.2, 1.1] for name in FRAMEWORKS}, "targets": dict.fromkeys(FRAMEWORKS, run),
        "cells": cells, "samples": samples, "skipped": [],
    })  # fmt: skip


def sample(cell: str, number: int, seconds: float, fingerprint: str, baseline: bool = False) -> Json:
    """A sample that was done."""
    return {
        "cell": cell, "round": number, "status": "done", "seconds": 8.0, "seconds_per_epoch": seconds,
        "first_epoch": seconds + 1.0, "first_step": 3.0, "peak_memory": 700_000_000, "gpu_memory": None,
        "joules_per_epoch": None, "fingerprint": fingerprint, "version": "1.2.3", "compile_cache": {},
        "startup": None if baseline else {"begin": 0.5, "import": 1.2, "build": 0.3, "compile": 1.0},
    }  # fmt: skip
