"""What can be asked of any command. A question changes one thing about its environment, its machine or its course.

It does not know what is trained. How a change is carried out is trials.py's business.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from repro.ask.questions import DIFFERS, SAME
from repro.run import experiment, gpu

OTHER_SEED = "1234567"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "PJRT_NPROC")  # fmt: skip
# Libraries told to use narrower vectors than the CPU has: PyTorch, oneDNN, MKL, OpenBLAS, XLA.
AVX2 = (("ATEN_CPU_CAPABILITY", "avx2"), ("ONEDNN_MAX_CPU_ISA", "AVX2"), ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
        ("OPENBLAS_CORETYPE", "Haswell"), ("XLA_FLAGS", "--xla_cpu_max_isa=AVX2"))  # fmt: skip
SSE4 = (("ATEN_CPU_CAPABILITY", "default"), ("ONEDNN_MAX_CPU_ISA", "SSE41"), ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
        ("OPENBLAS_CORETYPE", "Nehalem"), ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"))  # fmt: skip
ELSEWHERE = (("LANG", "tr_TR.UTF-8"), ("LC_ALL", "POSIX"), ("TZ", "Asia/Tokyo"), ("USER", "somebody"),
             ("LOGNAME", "somebody"), ("COLUMNS", "37"), ("REPRO_STRAY", "stray" * 300))  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One run: what differs from the command as it stands."""

    label: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that are set. A value of XLA_FLAGS is added to the user's own."""
    observed: bool = True
    reversed_listings: bool = False
    """Python gets the names in a folder in the reverse order."""
    cores: int | None = None
    seed: str | None = None
    contained: bool = False
    """The command runs in the image that --image names."""
    course: str = "straight"
    """straight | stop (SIGTERM in mid-run, then resumed) | kill (SIGKILL in mid-run, then resumed)."""


PLAIN = Change("as it stands")
AGAIN = Change("again")
WHOLE = Change("every step hashed")  # what a resumed run is compared with, where --every left steps out


@dataclass(frozen=True)
class Question:
    """What is asked: runs with a change each, compared with the command as it stands."""

    name: str
    title: str
    changes: tuple[Change, ...]
    promised: str | None = SAME
    """What a training must do to be called reproducible; None where other bits are nobody's fault."""
    cause: str = ""
    """Of a difference, as this question changes nothing else."""
    missing: Callable[[], str | None] = lambda: None
    """What this machine lacks for it."""


def _cores() -> str | None:
    return None if len(os.sched_getaffinity(0)) > 1 else "this machine, or its share for us, has one core"


def _gpu() -> str | None:
    return None if gpu.count() else "no NVIDIA GPU on this machine"


def _narrower() -> tuple[Change, ...]:
    """Only what this CPU can do."""
    has = experiment.machine()["cpu"]["instruction_set"]
    changes = (Change("AVX2", AVX2), Change("SSE4", SSE4))
    return changes if has == "avx512f" else changes[1:] if has in ("avx2", "avx") else ()


def _instruction_set() -> str | None:
    return None if _narrower() else "no narrower vector instructions are known for this CPU"


def _threads(count: int) -> Change:
    label = "1 thread" if count == 1 else f"{count} threads"
    return Change(label, tuple((name, str(count)) for name in THREADS))


def questions() -> tuple[Question, ...]:
    """All, in the order in which they are asked."""
    return (
        Question("restart", "Run again", (AGAIN,)),
        Question("observed", "Without the observer", (Change("not observed", observed=False),)),
        Question(
            "hash_seed", "Another hash seed",
            tuple(Change(f"PYTHONHASHSEED={seed}", (("PYTHONHASHSEED", seed),)) for seed in ("0", "77")),
            cause="only the hash seed of Python was changed, so the order of a set, or hash(), decides; sort the set",
        ),
        Question(
            "environment", "Another locale, time zone and user, stray variables", (Change("elsewhere", ELSEWHERE),),
            cause="only LANG, LC_ALL, TZ, USER, LOGNAME, COLUMNS and a stray variable were changed; one is read",
        ),
        Question(
            "threads", "Number of threads: 1, 4", (_threads(1), _threads(4)), promised=None,
            cause="only the number of threads was changed: sums are split among threads",
        ),
        Question(
            "instruction_set", "Narrower vector instructions", _narrower(), promised=None, missing=_instruction_set,
            cause="only the vector instructions were limited: wider vectors split a sum into more parts",
        ),
        Question(
            "cores", "One core", (Change("1 core", cores=1),), promised=None, missing=_cores,
            cause="only the number of cores was changed: libraries size their thread pools by it",
        ),
        Question(
            "file_order", "Folders listed in the reverse order", (Change("listings reversed", reversed_listings=True),),
            cause="only the order in which folders are listed was changed; sort what os.listdir or glob gives",
        ),
        Question("resume", "Stopped by SIGTERM, resumed", (Change("stopped, resumed", course="stop"),)),
        Question("kill", "Killed by SIGKILL, resumed", (Change("killed, resumed", course="kill"),)),
        Question(
            "container", "In an image", (Change("in the image", contained=True),), promised=None,
            cause="only the image was changed: its Python, its C library and its packages are others",
        ),
        Question(
            "gpu", "Without the GPU", (Change("without the GPU", (("CUDA_VISIBLE_DEVICES", ""),)),), promised=None,
            missing=_gpu, cause="only the GPU was hidden: a GPU adds in another order than a CPU",
        ),
        Question(
            "seed", "Control: another seed", (Change("another seed", seed=OTHER_SEED),), promised=DIFFERS,
            cause="another seed, as it should",
        ),
    )  # fmt: skip


NAMES = ("restart", "observed", "hash_seed", "environment", "threads", "instruction_set", "cores", "file_order",
         "resume", "kill", "container", "gpu", "seed")  # fmt: skip
