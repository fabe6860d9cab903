"""experiment.json: all that decides a run's bits."""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from repro.files import write_json
from repro.frameworks import FRAMEWORKS
from repro.machine import gpu
from repro.trainers.loop import environment, randomness
from repro.trainers.loop.config import Config
from repro.trainers.loop.data import Dataset

ROOT = Path(__file__).parents[3]
COMMIT = ROOT / "COMMIT"  # only images have this file

# Packages whose version can change bits, where they are installed.
PACKAGES = (
    "numpy",
    *(package for framework in FRAMEWORKS.values() for package in framework.packages),
    "triton",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-nccl-cu13",
    "nvidia-nccl-cu12",
)

# From the widest to the narrowest: the vector instructions that a library picks its kernels by
# (and NumPy's names of them).
INSTRUCTION_SETS = {"avx512f": "AVX512F", "avx2": "AVX2", "avx": "AVX", "sse4_2": "SSE42", "asimd": "ASIMD"}


def record(
    task: str, config: Config, facts: dict[str, object], dataset: Dataset, epochs: int, initial: str
) -> dict[str, Any]:
    """The record of a run that starts, for experiment.json. `initial` is the fingerprint of the initial weights."""
    from threadpoolctl import threadpool_info  # of the extra [trainers]; other functions of this file do without

    return {
        "task": task,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": asdict(config),
        "framework": facts,
        "versions": {"python": platform.python_version()} | _versions(),
        **machine(),
        "thread_pools": [{k: p.get(k) for k in ("internal_api", "version", "num_threads")} for p in threadpool_info()],
        "environment": environment.deciding(),
        "shut_out": environment.shut_out(),
        "container": container(),
        "source": source(),
        "sha256": {
            "data": dataset.sha256,
            "batch_order": _order(config.params.seed, epochs, len(dataset.train_labels)),
            "initial_weights": initial,
            "final_weights": None,
        },
    }


def common(record: dict[str, Any]) -> dict[str, object]:
    """What must be the same on all ranks of a run: configuration (paths apart), versions, commit, data."""
    config = record["config"]
    return {
        **{f"params.{key}": value for key, value in config["params"].items()},
        **{f"environment.{key}": value for key, value in config["environment"].items()},
        **{f"the version of {name}": version for name, version in record["versions"].items()},
        **{f"SHA-256 of {name}": digest for name, digest in record["sha256"].items()},
        "the framework": record["framework"]["framework"],
        "commit": record["source"]["commit"],
        "data.dataset": config["data"]["dataset"],
    }


def machine() -> dict[str, Any]:
    """This machine's CPU and GPUs."""
    return {"cpu": _cpu(), "gpu": gpu.described()}


def write(folder: Path, content: dict[str, object]) -> None:
    """Writes DIR/experiment.json, whole or not at all."""
    write_json(folder / "experiment.json", content)


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _order(seed: int, epochs: int, samples: int) -> str:
    """SHA-256 of the orders of all epochs, one after the other, as little-endian int32."""
    digest = hashlib.sha256()
    for epoch in range(1, epochs + 1):
        digest.update(randomness.order(seed, epoch, samples).astype("<i4").tobytes())
    return f"sha256:{digest.hexdigest()}"


def _cpu() -> dict[str, object]:
    described: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            described.setdefault(key.strip(), value.strip())
    emulator = os.environ.get("REPRO_EMULATOR")
    if emulator or ("vendor_id" in described and platform.machine() not in ("x86_64", "i686")):
        described = {"model name": emulator or "emulated"}  # an emulated process sees the file of its host
    features = _multiarray_umath.__cpu_features__  # what the CPU itself says, emulated or not
    return {
        "architecture": platform.machine(),
        "vendor": described.get("vendor_id"),
        "model": described.get("model name"),
        "instruction_set": next((name for name, feature in INSTRUCTION_SETS.items() if features.get(feature)), None),
        "cores": psutil.cpu_count(logical=False),
        "logical": psutil.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
    }


def container() -> dict[str, str | None] | None:
    """Engine and image. The image's digest is not visible from inside: whoever starts the container says it."""
    image = os.environ.get("REPRO_IMAGE") or os.environ.get("APPTAINER_CONTAINER")
    if os.environ.get("APPTAINER_CONTAINER") or os.environ.get("SINGULARITY_CONTAINER"):
        return {"engine": "apptainer", "image": image}
    if Path("/run/.containerenv").exists():
        return {"engine": "podman", "image": image}
    if COMMIT.exists():
        return {"engine": "docker", "image": image}
    return None


def source() -> dict[str, object]:
    """The commit that the code is of, and whether files differ from it.

    An image has no repository but a file that holds the commit it was built from.
    """
    with contextlib.suppress(OSError):
        return {"commit": COMMIT.read_text().strip(), "dirty": None}
    return commit(ROOT, "-c", f"safe.directory={ROOT}")


def commit(folder: Path, *options: str) -> dict[str, object]:
    """The commit of the repository that a folder is in, and whether files that it knows, or not, differ from it.

    Unknown where there is no repository, or git does not trust it: one of a stranger's could run a program of his.
    """
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        git = ["git", "-C", str(folder), *options]
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
        return {"commit": head.stdout.strip(), "dirty": bool(status.stdout.strip())}
    return {"commit": None, "dirty": None}
