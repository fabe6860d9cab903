"""Environment variables that a framework reads, set from the configuration alone before the framework is imported."""

import os
import platform
from pathlib import Path

from repro.frameworks import FRAMEWORKS
from repro.trainers.loop.config import Config, Params

# Else XLA may leave out a conversion to float32 and back, as more exact. The portable operations round in ways that it
# keeps; this is for what a framework, or an operation to come, converts on its own.
KEEP_ROUNDINGS = "--xla_allow_excess_precision=false"
# Else XLA on a CPU has a library, YNNPACK, compute small sums and products of float64, which takes longer. Of all kinds
# this names one that a portable program has none of. XLA knows the option from jaxlib 0.8.2 on.
NO_LIBRARY = "--xla_cpu_experimental_ynn_fusion_type=individual_convolution"


def apply(task: str, config: Config) -> None:
    """Sets this process's environment for the framework of a task, then what `environment` in train.yaml asks for."""
    flags = variables(task, config.params)
    if task == "jax":
        flags |= _compiled()
    for name, value in config.environment.items():
        flags[name] = f"{flags[name]} {value}" if name == "XLA_FLAGS" and name in flags else value
    os.environ.update(flags)


def variables(task: str, params: Params) -> dict[str, str]:
    """The variables that a task's framework needs, by the configuration alone."""
    return _threads(params) | _native_precision(params) | FLAGS[task](params)


def _threads(params: Params) -> dict[str, str]:
    # How long a thread of GNU OpenMP that waits for another keeps its core. 20,000 turns bridge the gaps between
    # PyTorch's operations, so that it need not be woken. Where others want the core, as ranks do, turns are lost.
    count, turns = str(params.threads), "1000" if params.ranks > 1 else "20000"
    return {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "GOMP_SPINCOUNT": turns}


def _native_precision(params: Params) -> dict[str, str]:
    # From CUDA 13.0 Update 2 on, cuBLAS may compute float64 by int8, and float32 by bfloat16, where it takes less time.
    names = ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATE_SINGLE_PRECISION")
    return dict.fromkeys(names, "0") if params.numerics != "fast" else {}


def _strict(task: str, params: Params) -> dict[str, str]:
    return FRAMEWORKS[task].deterministic if params.numerics != "fast" else {}


def _pytorch(params: Params) -> dict[str, str]:
    return _strict("pytorch", params)


def _tensorflow(params: Params) -> dict[str, str]:
    flags = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    flags["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # takes what it needs of a GPU's memory, not all that is free
    # TensorFlow takes oneDNN unasked on newer CPUs only. Here XLA convolves, but what else there is to do, and a
    # benchmark's other loops, oneDNN does faster on older ones, too. On other architectures TensorFlow decides.
    if platform.machine() == "x86_64":
        flags["TF_ENABLE_ONEDNN_OPTS"] = "1"
    if params.numerics == "portable":
        flags["XLA_FLAGS"] = KEEP_ROUNDINGS
    return flags


def _jax(params: Params) -> dict[str, str]:
    waiting = 1 if params.ranks > 1 else 0  # in an exchange with other ranks, a thread does nothing else
    flags = {"PJRT_NPROC": str(params.threads + waiting)}
    flags["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # as in TensorFlow; JAX would take three quarters of all
    if params.device == "cpu":
        flags["JAX_PLATFORMS"] = "cpu"
    flags |= _strict("jax", params)
    if params.numerics == "portable":
        flags["XLA_FLAGS"] += f" {KEEP_ROUNDINGS} {NO_LIBRARY}"
    return flags


def _compiled() -> dict[str, str]:
    """Variables by which JAX stores what XLA compiled, in the user's cache; none where that cannot be written.

    A program is found again only by the same code, versions, flags and instructions of the CPU, and only if whole:
    https://docs.jax.dev/en/latest/persistent_compilation_cache.html
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "repro" / "jax"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return {}
    if not os.access(folder, os.W_OK | os.X_OK):
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",  # on a GPU: which kernel was fastest, once
    }


FLAGS = {"pytorch": _pytorch, "tensorflow": _tensorflow, "jax": _jax}
