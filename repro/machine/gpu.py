"""NVIDIA GPUs by their driver (NVML): models, errors explained."""

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

from repro.errors import ReproError, UsageError
from repro.frameworks import FRAMEWORKS

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"
# In errors of PyTorch, XLA, TensorFlow, cuBLAS and cuDNN.
FULL = re.compile("(?i)out of memory|resource_exhausted|OOM when allocating|_alloc_failed|failed to allocate")
LOST = re.compile("CUDA error|CUDA_ERROR|launch failure|GPU is lost|NCCL error|device-side assert|_EXECUTION_FAILED")


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    """The driver's library. NVMLError where there is no driver."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def described() -> list[dict[str, object]]:
    """The model, driver, MIG and bytes of memory of every GPU that the driver shows; empty without a driver."""
    import pynvml

    try:
        with _nvml():
            return [_described(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []


def _described(nvml: Any, index: int) -> dict[str, object]:
    handle, mig = nvml.nvmlDeviceGetHandleByIndex(index), False
    with contextlib.suppress(nvml.NVMLError):  # a model without MIG
        mig = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    return {
        "model": nvml.nvmlDeviceGetName(handle),
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "mig": mig,
        "memory": nvml.nvmlDeviceGetMemoryInfo(handle).total,
    }


@cache
def count() -> int:
    """The number of NVIDIA GPUs that the driver shows; 0 where CUDA_VISIBLE_DEVICES hides all."""
    return 0 if os.environ.get(VISIBLE) == "" else len(described())


def joules() -> float:
    """The energy that the GPU in use has taken since its driver was loaded. NVMLError if unknown."""
    with _nvml() as nvml:
        return float(nvml.nvmlDeviceGetTotalEnergyConsumption(_in_use(nvml))) / 1000


def memory() -> tuple[int, int]:
    """Bytes of the GPU's memory that are taken, by any program, and in all. NVMLError if unknown."""
    with _nvml() as nvml:
        info = nvml.nvmlDeviceGetMemoryInfo(_in_use(nvml))
        return int(info.used), int(info.total)


def _in_use(nvml: Any) -> Any:
    """The handle of the first GPU, or part of one (MIG), that CUDA_VISIBLE_DEVICES names, by number or UUID."""
    first = os.environ.get(VISIBLE, "").split(",")[0] or "0"
    return nvml.nvmlDeviceGetHandleByIndex(int(first)) if first.isdecimal() else nvml.nvmlDeviceGetHandleByUUID(first)


def choose(wanted: str, there: bool, task: str, cuda: str | None) -> bool:
    """Decides whether a run uses a GPU: `wanted` is params.device, `there` says whether the task's framework finds one.

    `cuda` is the version of CUDA that the framework is built for, None for a build without. UsageError for a GPU that
    is wanted and not found. Where the driver shows one, the line says why; with `auto`, the log has the same line.
    """
    if there or wanted == "cpu":
        return there and wanted != "cpu"
    why, title = _unseen(task, cuda), FRAMEWORKS[task].title
    if wanted == "gpu":
        raise UsageError(f"params.device=gpu: {title} finds no GPU{why or ' on this machine'}; use auto or cpu")
    if why:
        log.warning("%s finds no GPU%s; it trains on the CPU", title, why)
    return False


def _unseen(task: str, cuda: str | None) -> str | None:
    """The reason that a framework finds no GPU, as the end of a sentence; None if the driver shows none either."""
    shown = described()
    if not shown:
        return None
    there = f", but there is an {shown[0]['model']}"
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        return f"{there}: {VISIBLE}={visible!r} hides it, or names none"
    if cuda is None or not find_spec("nvidia"):  # the package of CUDA's libraries
        return f"{there}: this environment has no CUDA (requirements/install.sh --accelerator=cuda {task})"
    with _nvml() as nvml:
        newest = nvml.nvmlSystemGetCudaDriverVersion()
    if newest // 1000 < int(cuda.split(".")[0]):
        own = f"{newest // 1000}.{newest % 1000 // 10}"
        return f"{there}: its driver {shown[0]['driver']} is for CUDA {own} or older, this build for {cuda}; update it"
    return f"{there}: nvidia-smi may say why it cannot be used"


@contextlib.contextmanager
def errors_explained(resume: str) -> Iterator[None]:
    """Turns what a framework says of a GPU that is full, or fails, into one ReproError; `resume` says how to go on."""
    try:
        yield
    except ReproError:
        raise
    except Exception as error:
        lines = [line.strip()[:120] for line in str(error).splitlines() if line.strip()]
        full, lost = (next((line for line in lines if kind.search(line)), None) for kind in (FULL, LOST))
        if not (count() and (full or lost)):
            raise
        if not full:
            said = f"{type(error).__name__}: {lost}"
            raise ReproError(f"GPU: it failed or was lost ({said}); see nvidia-smi and dmesg; {resume}") from error
        raise ReproError(
            f"GPU: its memory is full{_taken()} ({full}); see nvidia-smi, then name another GPU in {VISIBLE}, lower "
            f"params.batch_size_train, or set params.device=cpu; {resume}"
        ) from error


def _taken() -> str:
    with contextlib.suppress(Exception):  # a GPU with a problem may not answer
        used, total = memory()
        return f": {used >> 20} of {total >> 20} MiB are taken, by this and by other programs"
    return ""
