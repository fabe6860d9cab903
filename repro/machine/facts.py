"""Facts of the machine and the software on it that can decide the bits of a training."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import psutil
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from repro.frameworks import FRAMEWORKS
from repro.machine import gpu

ROOT = Path(__file__).parents[2]
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


def hardware() -> dict[str, Any]:
    """This machine's CPU and GPUs."""
    return {"cpu": _cpu(), "gpu": gpu.described()}


def versions() -> dict[str, str]:
    """The versions of Python and of the installed packages that can change bits."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


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
    """The engine and the image. The image's digest is not visible from inside: whoever starts the container says it."""
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
