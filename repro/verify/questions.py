"""Questions that `verify` can ask.

Each entry is a declaration: what is changed, what the runs need, what is compared and what is promised. It does not know what
is trained; command_runs.py carries a change out for a command, trainer_runs.py for the reference trainers.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from repro.run import experiment, gpu

AnswerWord = Literal["same", "differs", "cannot tell", "not asked"]
Promise = Literal["same", "differs"] | None

SAME: Literal["same"] = "same"
DIFFERS: Literal["differs"] = "differs"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
NOT_ASKED: Literal["not asked"] = "not asked"
UNANSWERED = (NOT_ASKED, CANNOT_TELL)
SHOWN = {CANNOT_TELL: "inconclusive", NOT_ASKED: "skipped"}  # results.json keeps the words of schema 1

# What a promise holds for: (deterministic, portable). `fast` promises nothing, except that controls differ. A command
# of one's own is held to what `deterministic` promises.
ALWAYS: tuple[Promise, Promise] = (SAME, SAME)
PORTABLE_ONLY: tuple[Promise, Promise] = (None, SAME)
NEVER: tuple[Promise, Promise] = (None, None)


def shown(answer: str) -> str:
    """The word that people read for an answer."""
    return SHOWN.get(answer, answer)


def kept(promise: Promise, answer: str) -> bool | None:
    """Whether a promise was kept; None without one, or without an answer."""
    return None if promise is None or answer in UNANSWERED else promise == answer


@dataclass(frozen=True)
class Change:
    """One run of a question: what differs from the training as it stands."""

    label: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the process. To a command's own XLA_FLAGS, a value is added."""
    course: Literal["straight", "kill", "stop", "epoch", "relay"] = "straight"
    """straight | kill (by SIGKILL in mid-run, resumed); of a command also stop (by SIGTERM); of the reference trainers also
    epoch (stopped after an epoch, resumed) | relay (each third of the steps in another framework)."""

    # of a command
    observed: bool = True
    reversed_listings: bool = False
    """Python gets the names in a folder in the reverse order."""
    cores: int | None = None
    seed: str | None = None
    contained: bool = False
    """The command runs in the image that --image names."""
    narrowed_to: str | None = None
    """Vector instructions that libraries are limited to, as experiment.INSTRUCTION_SETS names them."""

    # of the reference trainers
    overrides: tuple[str, ...] = ()
    """Keys of the configuration, over those that all runs of this verify have."""
    runtime: Literal["host", "docker", "apptainer", "qemu", "other"] = "host"
    """host | docker | apptainer | qemu (the label names the CPU) | other (each environment in verify.others)."""
    gpu: bool = False
    framework: str | None = None
    """The only framework that it is for; None: each."""

    @property
    def possible(self) -> bool:
        """Whether this CPU has wider vector instructions than those that libraries are limited to."""
        if self.narrowed_to is None:
            return True
        widths, own = [*experiment.INSTRUCTION_SETS], _instruction_set()
        return own is not None and widths.index(own) < widths.index(self.narrowed_to)


BASELINE = Change("as it stands")
REPEAT = Change("again")
FULLY_HASHED = Change("every step hashed")  # what a resumed command is compared with, where --every leaves steps out
TRAINER_BASELINE = Change("as configured")


@dataclass(frozen=True)
class Question:
    """What is asked: runs with a change each, compared with the training as it stands."""

    name: str
    title: str
    changes: tuple[Change, ...]
    promise: tuple[Promise, Promise] = ALWAYS
    base: Change = BASELINE
    """What the changes are compared with."""
    control: bool = False
    """Whether it must differ: one that came out the same would show that the check cannot fail."""
    obstacle: Callable[[], str | None] = lambda: None
    """What this machine lacks for it."""

    # of a command
    needs: Literal["resume", "image", "seed_option"] | None = None
    """The option of `verify` that must be given."""
    compared: Literal["steps", "outputs", "resumed"] = "steps"
    """steps (and outputs, with the baseline's) | outputs (or printed text alone) | resumed (steps, with those of a fully
    hashed baseline)."""
    meaning: str = ""
    """What a difference means, as this question changes nothing else; a resumed run's records show it."""
    sameness: str = ""
    """What sameness means, where it is not that so much was compared."""

    # of the reference trainers
    together: bool = False
    """Whether it is asked once, of all frameworks' runs together."""
    slow: bool = False
    """Whether it takes minutes, so that it is asked only by name, or by questions=everything."""
    numerics: str | None = None
    """The only arithmetic that it is asked in."""
    evidence: Literal["fingerprint", "evaluation"] = "fingerprint"
    """What must be the same: the `fingerprint` of the weights, or the `evaluation`, loss bits and count of correct."""

    def promised(self, numerics: str) -> Promise:
        """What is promised in `numerics`, one of the reference trainers' or any other text."""
        if self.control:
            return DIFFERS
        return {"fast": None, "portable": self.promise[1]}.get(numerics, self.promise[0])

    @property
    def repeats(self) -> bool:
        """Whether it asks for nothing but the baseline once more."""
        return self.changes == (REPEAT,)

    @property
    def resumes(self) -> bool:
        """Whether its runs are stopped, and resumed by a command of their own."""
        return self.compared == "resumed"

    @property
    def possible_changes(self) -> tuple[Change, ...]:
        """The changes that this machine can make."""
        return tuple(change for change in self.changes if change.possible)


# --- any command ----------------------------------------------------------------------------------------------------

OTHER_SEED = "1234567"
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "PJRT_NPROC",
)
# Libraries that are set to use narrower vectors than the CPU has: PyTorch, oneDNN, MKL, OpenBLAS, XLA.
AVX2 = (
    ("ATEN_CPU_CAPABILITY", "avx2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX2"),
    ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    ("OPENBLAS_CORETYPE", "Haswell"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=AVX2"),
)
SSE4 = (
    ("ATEN_CPU_CAPABILITY", "default"),
    ("ONEDNN_MAX_CPU_ISA", "SSE41"),
    ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
    ("OPENBLAS_CORETYPE", "Nehalem"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
)
PLACE = (
    ("LANG", "tr_TR.UTF-8"),
    ("LC_ALL", "POSIX"),
    ("TZ", "Asia/Tokyo"),
    ("USER", "somebody"),
    ("LOGNAME", "somebody"),
)
STRAY = (("COLUMNS", "37"), ("REPRO_STRAY", "stray" * 300))


def _one_core() -> str | None:
    return None if len(os.sched_getaffinity(0)) > 1 else "this machine, or its share for us, has one core"


def _no_gpu() -> str | None:
    return None if gpu.count() else "no NVIDIA GPU on this machine"


def _narrowest() -> str | None:
    possible = any(change.possible for change in NARROWER)
    return None if possible else "no narrower vector instructions are known for this CPU"


@cache
def _instruction_set() -> str | None:
    """The widest vector instructions of this CPU."""
    widest: str | None = experiment.machine()["cpu"]["instruction_set"]
    return widest


def _threads(count: int) -> Change:
    label = "1 thread" if count == 1 else f"{count} threads"
    return Change(label, tuple((name, str(count)) for name in THREADS))


NARROWER = (Change("AVX2", AVX2, narrowed_to="avx2"), Change("SSE4", SSE4, narrowed_to="sse4_2"))
HASH_SEEDS = tuple(Change(f"PYTHONHASHSEED={seed}", (("PYTHONHASHSEED", seed),)) for seed in ("0", "77"))

COMMAND_QUESTIONS = (
    Question("restart", "Run again", (REPEAT,)),
    Question(
        "observed",
        "Without the observer",
        (Change("not observed", observed=False),),
        compared="outputs",
        meaning="the observer changes what the command writes; please report it",
    ),
    Question(
        "hash_seed",
        "Another hash seed",
        HASH_SEEDS,
        meaning="only the hash seed of Python was changed, so the order of a set, or hash(), decides; sort the set",
    ),
    Question(
        "environment",
        "Another locale, time zone and user, stray variables",
        (Change("elsewhere", PLACE + STRAY),),
        meaning="only LANG, LC_ALL, TZ, USER, LOGNAME, COLUMNS and a stray variable were changed; one is read",
    ),
    Question(
        "threads",
        "Number of threads: 1, 4",
        (_threads(1), _threads(4)),
        NEVER,
        meaning="only the number of threads was changed: sums are split among threads",
    ),
    Question(
        "instruction_set",
        "Narrower vector instructions",
        NARROWER,
        NEVER,
        obstacle=_narrowest,
        meaning="only the vector instructions were limited: wider vectors split a sum into more parts",
    ),
    Question(
        "cores",
        "One core",
        (Change("1 core", cores=1),),
        NEVER,
        obstacle=_one_core,
        meaning="only the number of cores was changed: libraries size their thread pools by it",
    ),
    Question(
        "file_order",
        "Folders listed in the reverse order",
        (Change("listings reversed", reversed_listings=True),),
        meaning="only the order in which folders are listed was changed; sort what os.listdir or glob gives",
    ),
    Question(
        "resume",
        "Stopped by SIGTERM, resumed",
        (Change("stopped, resumed", course="stop"),),
        needs="resume",
        compared="resumed",
    ),
    Question(
        "kill",
        "Killed by SIGKILL, resumed",
        (Change("killed, resumed", course="kill"),),
        needs="resume",
        compared="resumed",
    ),
    Question(
        "container",
        "In an image",
        (Change("in the image", contained=True),),
        NEVER,
        needs="image",
        meaning="only the image was changed: its Python, its C library and its packages are others",
    ),
    Question(
        "gpu",
        "Without the GPU",
        (Change("without the GPU", (("CUDA_VISIBLE_DEVICES", ""),)),),
        NEVER,
        obstacle=_no_gpu,
        meaning="only the GPU was hidden: a GPU adds in another order than a CPU",
    ),
    Question(
        "seed",
        "Control: another seed",
        (Change("another seed", seed=OTHER_SEED),),
        control=True,
        needs="seed_option",
        meaning="another seed, as it should",
        sameness="another seed changes nothing: the command does not use the option, or nothing depends on it",
    ),
)
"""Those of any command, in the order in which they are asked."""
COMMAND_NAMES = tuple(question.name for question in COMMAND_QUESTIONS)


# --- the reference trainers -----------------------------------------------------------------------------------------

GPU = Change("on the GPU", overrides=("params.device=gpu",), gpu=True)
EPOCHS = ("params.batch_size_train=1000", "params.max_steps=80")  # an epoch of 60 steps, and 20 more
FAST = ("params.numerics=fast",)
ENTROPY = "params.seed=entropy"  # trainer_runs.py puts a number from the operating system there
UNSEEDED, UNSEEDED_REPEAT = (Change(label, overrides=(ENTROPY,)) for label in ("no seed", "no seed again"))
ELSEWHERE = (
    ("PYTHONHASHSEED", "77"),
    *PLACE,
    ("HOME", "/nowhere"),
    ("OMP_NUM_THREADS", "7"),
    ("TF_ENABLE_ONEDNN_OPTS", "0"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
)


def capped(label: str, framework: str, **environment: str) -> Change:
    """A framework whose libraries are set to use narrower vectors than the CPU has."""
    overrides = tuple(f'++environment.{name}="{value}"' for name, value in environment.items())
    return Change(label, overrides=overrides, framework=framework)


_of_trainers = partial(Question, base=TRAINER_BASELINE)

TRAINER_QUESTIONS = (
    _of_trainers("restart_cpu", "Restart on the CPU", (REPEAT,)),
    _of_trainers(
        "restart_gpu", "Restart on the GPU", (Change("on the GPU again", overrides=GPU.overrides, gpu=True),), base=GPU
    ),
    _of_trainers(
        "resume_epoch",
        "Resume from a checkpoint between epochs",
        (Change("stopped after an epoch, resumed", overrides=EPOCHS, course="epoch"),),
        base=Change("two epochs", overrides=EPOCHS),
    ),
    _of_trainers(
        "resume_kill", "Resume in mid-epoch after SIGKILL", (Change("killed in mid-epoch, resumed", course="kill"),)
    ),
    _of_trainers(
        "workers",
        "Number of loader workers",
        (
            Change("1 worker", overrides=("params.num_workers=1",)),
            Change("3 workers", overrides=("params.num_workers=3",)),
        ),
    ),
    _of_trainers(
        "threads",
        "Number of threads",
        (Change("1 thread", overrides=("params.threads=1",)), Change("4 threads", overrides=("params.threads=4",))),
        PORTABLE_ONLY,
    ),
    _of_trainers("cpu_gpu", "CPU against GPU", (GPU,), PORTABLE_ONLY),
    _of_trainers(
        "instruction_set",
        "Narrower vector instructions",
        (
            capped(
                "AVX2", "pytorch", ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2"
            ),
            capped(
                "SSE4",
                "pytorch",
                ATEN_CPU_CAPABILITY="default",
                ONEDNN_MAX_CPU_ISA="SSE41",
                MKL_ENABLE_INSTRUCTIONS="SSE4_2",
            ),
            capped("AVX2", "tensorflow", ONEDNN_MAX_CPU_ISA="AVX2"),
            capped("without oneDNN", "tensorflow", TF_ENABLE_ONEDNN_OPTS="0"),
            capped("AVX2", "jax", XLA_FLAGS="--xla_cpu_max_isa=AVX2"),
            capped("SSE4", "jax", XLA_FLAGS="--xla_cpu_max_isa=SSE4_2"),
        ),
        PORTABLE_ONLY,
    ),
    _of_trainers(
        "emulated_cpu",
        "Emulated CPUs: Haswell, Sandy Bridge (no FMA), Nehalem (no AVX)",
        tuple(Change(model, runtime="qemu") for model in ("Haswell", "SandyBridge", "Nehalem")),
        PORTABLE_ONLY,
        slow=True,
    ),
    _of_trainers(
        "other", "Another version or architecture (verify.others)", (Change("other", runtime="other"),), PORTABLE_ONLY
    ),
    _of_trainers(
        "engines",
        "Host, Docker, Apptainer",
        (Change("in Docker", runtime="docker"), Change("in Apptainer", runtime="apptainer")),
    ),
    _of_trainers("process", "Another process environment", (Change("elsewhere", ELSEWHERE),)),
    _of_trainers(
        "evaluation",
        "Evaluation in other batches",
        (
            Change("one by one", overrides=("params.batch_size_test=1",)),
            Change("all at once", overrides=("params.batch_size_test=10000",)),
        ),
        PORTABLE_ONLY,
        evidence="evaluation",
    ),
    _of_trainers(
        "products",
        "Matmul backends: float64, int8, int16",
        tuple(
            Change(f"{name} products", overrides=(f"params.engine={name}",)) for name in ("float64", "int8", "int16")
        ),
        PORTABLE_ONLY,
        numerics="portable",
    ),
    _of_trainers("frameworks", "The three frameworks against one another", (), PORTABLE_ONLY, together=True),
    _of_trainers(
        "relay",
        "Begun in one framework, ended in another",
        (Change("handed on", course="relay"),),
        PORTABLE_ONLY,
        together=True,
    ),
    _of_trainers(
        "seed", "Control: another seed", (Change("another seed", overrides=("params.seed=1234567",)),), control=True
    ),
    _of_trainers("unseeded", "Control: no seed", (UNSEEDED_REPEAT,), base=UNSEEDED, control=True),
    _of_trainers(
        "fast",
        "params.numerics=fast, twice",
        (Change("fast again", overrides=FAST),),
        NEVER,
        base=Change("fast", overrides=FAST),
    ),
)

CHOICES = ("all", "everything", *(question.name for question in TRAINER_QUESTIONS))
