"""What `verify` can ask, of the suite and of any command. A question changes one thing, and says what is promised.

Each entry is a declaration. It does not know what is trained; how a change is carried out is trials.py's business for a
command, and runs.py's for the suite.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from repro.run import experiment, gpu

SAME, DIFFERS = "same", "differs"
CANNOT_TELL, NOT_ASKED = "cannot tell", "not asked"
UNANSWERED = (NOT_ASKED, CANNOT_TELL)

# What a promise holds for: (deterministic, portable). `fast` promises nothing, except that controls differ. A command
# of one's own is held to what `deterministic` promises.
ALWAYS = (SAME, SAME)
PORTABLE_ONLY = (None, SAME)
NEVER = (None, None)


@dataclass(frozen=True)
class Change:
    """One run of a question: what differs from the training as it stands."""

    label: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the process. To a command's own XLA_FLAGS, a value is added."""
    course: str = "straight"
    """straight | kill (by SIGKILL in mid-run, resumed); of a command also stop (by SIGTERM); of the suite also epoch
    (stopped after an epoch, resumed) | relay (each third of the steps in another framework)."""

    # of a command
    observed: bool = True
    reversed_listings: bool = False
    """Python gets the names in a folder in the reverse order."""
    cores: int | None = None
    seed: str | None = None
    contained: bool = False
    """The command runs in the image that --image names."""

    # of the suite
    overrides: tuple[str, ...] = ()
    """Of the configuration, over those that all runs of this verify have."""
    engine: str = "host"
    """host | docker | apptainer | qemu (the label names the CPU) | other (each environment in verify.others)."""
    gpu: bool = False
    framework: str | None = None
    """Only for this framework; None: for each."""


PLAIN = Change("as it stands")
AGAIN = Change("again")
WHOLE = Change("every step hashed")  # what a resumed command is compared with, where --every left steps out
BASE = Change("as configured")


@dataclass(frozen=True)
class Question:
    """What is asked: runs with a change each, compared with the training as it stands."""

    name: str
    title: str
    changes: tuple[Change, ...]
    promise: tuple[str | None, str | None] = ALWAYS
    base: Change = PLAIN
    """What the changes are compared with."""
    control: bool = False
    """A check that must differ: one that came out the same would show that the check cannot fail."""
    cause: str = ""
    """Of a difference, as this question changes nothing else."""
    missing: Callable[[], str | None] = lambda: None
    """What this machine lacks for it."""
    of_suite: bool = False
    together: bool = False
    """Asked once, of all frameworks' runs together."""
    slow: bool = False
    """Takes minutes, so it is asked only by name, or by questions=everything."""
    numerics: str | None = None
    """Of the suite: only in this arithmetic."""
    evidence: str = "fingerprint"
    """What must be the same: the `fingerprint` of the weights, or the `evaluation`, loss bits and count of correct."""

    def promised(self, numerics: str) -> str | None:
        """`same`, `differs`, or None where nothing is promised; `numerics` is one of the suite, or any other text."""
        if self.control:
            return DIFFERS
        return {"fast": None, "portable": self.promise[1]}.get(numerics, self.promise[0])


# --- any command ----------------------------------------------------------------------------------------------------

OTHER_SEED = "1234567"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "PJRT_NPROC")  # fmt: skip
# Libraries told to use narrower vectors than the CPU has: PyTorch, oneDNN, MKL, OpenBLAS, XLA.
AVX2 = (("ATEN_CPU_CAPABILITY", "avx2"), ("ONEDNN_MAX_CPU_ISA", "AVX2"), ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
        ("OPENBLAS_CORETYPE", "Haswell"), ("XLA_FLAGS", "--xla_cpu_max_isa=AVX2"))  # fmt: skip
SSE4 = (("ATEN_CPU_CAPABILITY", "default"), ("ONEDNN_MAX_CPU_ISA", "SSE41"), ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
        ("OPENBLAS_CORETYPE", "Nehalem"), ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"))  # fmt: skip
ANYWHERE = (("LANG", "tr_TR.UTF-8"), ("LC_ALL", "POSIX"), ("TZ", "Asia/Tokyo"), ("USER", "somebody"),
             ("LOGNAME", "somebody"), ("COLUMNS", "37"), ("REPRO_STRAY", "stray" * 300))  # fmt: skip


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


@cache
def of_a_command() -> tuple[Question, ...]:
    """Those of any command, in the order in which they are asked."""
    return (
        Question("restart", "Run again", (AGAIN,)),
        Question("observed", "Without the observer", (Change("not observed", observed=False),)),
        Question(
            "hash_seed", "Another hash seed",
            tuple(Change(f"PYTHONHASHSEED={seed}", (("PYTHONHASHSEED", seed),)) for seed in ("0", "77")),
            cause="only the hash seed of Python was changed, so the order of a set, or hash(), decides; sort the set",
        ),
        Question(
            "environment", "Another locale, time zone and user, stray variables", (Change("elsewhere", ANYWHERE),),
            cause="only LANG, LC_ALL, TZ, USER, LOGNAME, COLUMNS and a stray variable were changed; one is read",
        ),
        Question(
            "threads", "Number of threads: 1, 4", (_threads(1), _threads(4)), promise=NEVER,
            cause="only the number of threads was changed: sums are split among threads",
        ),
        Question(
            "instruction_set", "Narrower vector instructions", _narrower(), promise=NEVER, missing=_instruction_set,
            cause="only the vector instructions were limited: wider vectors split a sum into more parts",
        ),
        Question(
            "cores", "One core", (Change("1 core", cores=1),), promise=NEVER, missing=_cores,
            cause="only the number of cores was changed: libraries size their thread pools by it",
        ),
        Question(
            "file_order", "Folders listed in the reverse order", (Change("listings reversed", reversed_listings=True),),
            cause="only the order in which folders are listed was changed; sort what os.listdir or glob gives",
        ),
        Question("resume", "Stopped by SIGTERM, resumed", (Change("stopped, resumed", course="stop"),)),
        Question("kill", "Killed by SIGKILL, resumed", (Change("killed, resumed", course="kill"),)),
        Question(
            "container", "In an image", (Change("in the image", contained=True),), promise=NEVER,
            cause="only the image was changed: its Python, its C library and its packages are others",
        ),
        Question(
            "gpu", "Without the GPU", (Change("without the GPU", (("CUDA_VISIBLE_DEVICES", ""),)),), promise=NEVER,
            missing=_gpu, cause="only the GPU was hidden: a GPU adds in another order than a CPU",
        ),
        Question(
            "seed", "Control: another seed", (Change("another seed", seed=OTHER_SEED),), control=True,
            cause="another seed, as it should",
        ),
    )  # fmt: skip


OF_A_COMMAND = ("restart", "observed", "hash_seed", "environment", "threads", "instruction_set", "cores", "file_order",
                "resume", "kill", "container", "gpu", "seed")  # fmt: skip
"""Their names."""


# --- the suite ------------------------------------------------------------------------------------------------------

GPU = Change("on the GPU", overrides=("params.device=gpu",), gpu=True)
EPOCHS = ("params.batch_size_train=1000", "params.max_steps=80")  # an epoch of 60 steps, and 20 more
FAST = ("params.numerics=fast",)
ENTROPY = "params.seed=entropy"  # runs.py puts a number from the operating system there
UNSEEDED, UNSEEDED_AGAIN = (Change(label, overrides=(ENTROPY,)) for label in ("no seed", "no seed again"))
ELSEWHERE = (
    ("PYTHONHASHSEED", "77"),
    ("LANG", "tr_TR.UTF-8"),
    ("LC_ALL", "POSIX"),
    ("TZ", "Asia/Tokyo"),
    ("USER", "somebody"),
    ("LOGNAME", "somebody"),
    ("HOME", "/nowhere"),
    ("OMP_NUM_THREADS", "7"),
    ("TF_ENABLE_ONEDNN_OPTS", "0"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
)


def capped(label: str, framework: str, **environment: str) -> Change:
    """A framework whose libraries are told to use narrower vectors than the CPU has."""
    overrides = tuple(f'++environment.{name}="{value}"' for name, value in environment.items())
    return Change(label, overrides=overrides, framework=framework)


_of_suite = partial(Question, base=BASE, of_suite=True)

OF_THE_SUITE = (
    _of_suite("restart_cpu", "Restart on the CPU", (AGAIN,)),
    _of_suite(
        "restart_gpu", "Restart on the GPU", (Change("on the GPU again", overrides=GPU.overrides, gpu=True),), base=GPU
    ),
    _of_suite(
        "resume_epoch", "Resume from a checkpoint between epochs",
        (Change("stopped after an epoch, resumed", overrides=EPOCHS, course="epoch"),),
        base=Change("two epochs", overrides=EPOCHS),
    ),
    _of_suite(
        "resume_kill", "Resume in mid-epoch after SIGKILL", (Change("killed in mid-epoch, resumed", course="kill"),)
    ),
    _of_suite(
        "workers", "Number of loader workers",
        (
            Change("1 worker", overrides=("params.num_workers=1",)),
            Change("3 workers", overrides=("params.num_workers=3",)),
        ),
    ),
    _of_suite(
        "threads", "Number of threads",
        (Change("1 thread", overrides=("params.threads=1",)), Change("4 threads", overrides=("params.threads=4",))),
        PORTABLE_ONLY,
    ),
    _of_suite("cpu_gpu", "CPU against GPU", (GPU,), PORTABLE_ONLY),
    _of_suite(
        "instruction_set", "Narrower vector instructions",
        (
            capped(
                "AVX2", "pytorch", ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2"
            ),
            capped(
                "SSE4", "pytorch", ATEN_CPU_CAPABILITY="default", ONEDNN_MAX_CPU_ISA="SSE41",
                MKL_ENABLE_INSTRUCTIONS="SSE4_2",
            ),
            capped("AVX2", "tensorflow", ONEDNN_MAX_CPU_ISA="AVX2"),
            capped("without oneDNN", "tensorflow", TF_ENABLE_ONEDNN_OPTS="0"),
            capped("AVX2", "jax", XLA_FLAGS="--xla_cpu_max_isa=AVX2"),
            capped("SSE4", "jax", XLA_FLAGS="--xla_cpu_max_isa=SSE4_2"),
        ),
        PORTABLE_ONLY,
    ),
    _of_suite(
        "emulated_cpu", "Emulated CPUs: Haswell, Sandy Bridge (no FMA), Nehalem (no AVX)",
        tuple(Change(model, engine="qemu") for model in ("Haswell", "SandyBridge", "Nehalem")),
        PORTABLE_ONLY, slow=True,
    ),
    _of_suite(
        "other", "Another version or architecture (verify.others)", (Change("other", engine="other"),), PORTABLE_ONLY
    ),
    _of_suite(
        "engines", "Host, Docker, Apptainer",
        (Change("in Docker", engine="docker"), Change("in Apptainer", engine="apptainer")),
    ),
    _of_suite("process", "Another process environment", (Change("elsewhere", ELSEWHERE),)),
    _of_suite(
        "evaluation", "Evaluation in other batches",
        (
            Change("one by one", overrides=("params.batch_size_test=1",)),
            Change("all at once", overrides=("params.batch_size_test=10000",)),
        ),
        PORTABLE_ONLY, evidence="evaluation",
    ),
    _of_suite(
        "products", "Engines of products: float64, int8, int16",
        tuple(
            Change(f"{name} products", overrides=(f"params.engine={name}",)) for name in ("float64", "int8", "int16")
        ),
        PORTABLE_ONLY, numerics="portable",
    ),
    _of_suite("frameworks", "The three frameworks against one another", (), PORTABLE_ONLY, together=True),
    _of_suite(
        "relay", "Begun in one framework, ended in another", (Change("handed on", course="relay"),), PORTABLE_ONLY,
        together=True,
    ),
    _of_suite(
        "seed", "Control: another seed", (Change("another seed", overrides=("params.seed=1234567",)),), control=True
    ),
    _of_suite("unseeded", "Control: no seed", (UNSEEDED_AGAIN,), base=UNSEEDED, control=True),
    _of_suite(
        "fast", "params.numerics=fast, twice", (Change("fast again", overrides=FAST),), NEVER,
        base=Change("fast", overrides=FAST),
    ),
)  # fmt: skip

NAMES = tuple(question.name for question in OF_THE_SUITE)
CHOICES = ("all", "everything", *NAMES)
