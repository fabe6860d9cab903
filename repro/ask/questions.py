"""What `verify` can ask. A question varies one thing between runs, holds all else fixed, and says what is promised.

Each entry is a declaration: its runs as plans, and the promised answer by numerics. How a plan is carried out is
verify.py's business.
"""

from dataclasses import dataclass

SAME, DIFFERS = "same", "differs"

# What a promise holds for: (deterministic, portable). `fast` promises nothing, except that controls differ.
ALWAYS = (SAME, SAME)
PORTABLE_ONLY = (None, SAME)
NEVER = (None, None)


@dataclass(frozen=True)
class Plan:
    """One run of a question: what it changes of the run as configured."""

    label: str = "as configured"
    overrides: tuple[str, ...] = ()
    """Of the configuration, over those that all runs of this verify have."""
    environment: tuple[tuple[str, str], ...] = ()
    """Of the process that calls run.sh."""
    engine: str = "host"
    """host | docker | apptainer | qemu (the label names the CPU) | other (each environment in verify.others)."""
    course: str = "straight"
    """straight | epoch (stopped after an epoch, resumed) | kill (by SIGKILL in mid-epoch, resumed) | relay (each third
    of the steps in another framework)."""
    gpu: bool = False
    framework: str | None = None
    """Only for this framework; None: for each."""


BASE = Plan()
AGAIN = Plan("again")
GPU = Plan("on the GPU", ("params.device=gpu",), gpu=True)
EPOCHS = ("params.batch_size_train=1000", "params.max_steps=80")  # an epoch of 60 steps, and 20 more
FAST = ("params.numerics=fast",)
ENTROPY = "params.seed=entropy"  # verify.py puts a number from the operating system there
UNSEEDED, UNSEEDED_AGAIN = Plan("no seed", (ENTROPY,)), Plan("no seed again", (ENTROPY,))
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


def capped(label: str, framework: str, **environment: str) -> Plan:
    """A framework whose libraries are told to use narrower vectors than the CPU has."""
    overrides = tuple(f'++environment.{name}="{value}"' for name, value in environment.items())
    return Plan(label, overrides, framework=framework)


@dataclass(frozen=True)
class Question:
    """What is asked of each framework, or of all of them together."""

    name: str
    title: str
    plans: tuple[Plan, ...]
    promise: tuple[str | None, str | None] = ALWAYS
    control: bool = False
    """A check that must differ: one that came out the same would show that the check cannot fail."""
    together: bool = False
    """Asked once, of all frameworks' runs together."""
    slow: bool = False
    """Takes minutes, so it is asked only by name, or by questions=everything."""
    evidence: str = "fingerprint"
    """What must be the same: the `fingerprint` of the weights, or the `evaluation`, loss bits and count of correct."""

    def promised(self, numerics: str) -> str | None:
        """`same`, `differs`, or None where this numerics promises nothing."""
        if self.control:
            return DIFFERS
        return {"fast": None, "deterministic": self.promise[0], "portable": self.promise[1]}[numerics]


QUESTIONS = (
    Question("restart_cpu", "Restart on the CPU", (BASE, AGAIN)),
    Question("restart_gpu", "Restart on the GPU", (GPU, Plan("on the GPU again", GPU.overrides, gpu=True))),
    Question(
        "resume_epoch",
        "Resume from a checkpoint between epochs",
        (Plan("two epochs", EPOCHS), Plan("stopped after an epoch, resumed", EPOCHS, course="epoch")),
    ),
    Question(
        "resume_kill",
        "Resume in mid-epoch after SIGKILL",
        (BASE, Plan("killed in mid-epoch, resumed", course="kill")),
    ),
    Question(
        "workers",
        "Number of loader workers",
        (BASE, Plan("1 worker", ("params.num_workers=1",)), Plan("3 workers", ("params.num_workers=3",))),
    ),
    Question(
        "threads",
        "Number of threads",
        (BASE, Plan("1 thread", ("params.threads=1",)), Plan("4 threads", ("params.threads=4",))),
        PORTABLE_ONLY,
    ),
    Question("cpu_gpu", "CPU against GPU", (BASE, GPU), PORTABLE_ONLY),
    Question(
        "instruction_set",
        "Narrower vector instructions",
        (
            BASE,
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
    Question(
        "emulated_cpu",
        "Emulated CPUs: Haswell, Sandy Bridge (no FMA), Nehalem (no AVX)",
        (BASE, *(Plan(model, engine="qemu") for model in ("Haswell", "SandyBridge", "Nehalem"))),
        PORTABLE_ONLY,
        slow=True,
    ),
    Question(
        "other", "Another version or architecture (verify.others)", (BASE, Plan("other", engine="other")), PORTABLE_ONLY
    ),
    Question(
        "engines",
        "Host, Docker, Apptainer",
        (BASE, Plan("in Docker", engine="docker"), Plan("in Apptainer", engine="apptainer")),
    ),
    Question("process", "Another process environment", (BASE, Plan("elsewhere", environment=ELSEWHERE))),
    Question(
        "evaluation",
        "Evaluation in other batches",
        (
            BASE,
            Plan("one by one", ("params.batch_size_test=1",)),
            Plan("all at once", ("params.batch_size_test=10000",)),
        ),
        PORTABLE_ONLY,
        evidence="evaluation",
    ),
    Question("frameworks", "The three frameworks against one another", (BASE,), PORTABLE_ONLY, together=True),
    Question(
        "relay",
        "Begun in one framework, ended in another",
        (BASE, Plan("handed on", course="relay")),
        PORTABLE_ONLY,
        together=True,
    ),
    Question("seed", "Control: another seed", (BASE, Plan("another seed", ("params.seed=1234567",))), control=True),
    Question("unseeded", "Control: no seed", (UNSEEDED, UNSEEDED_AGAIN), control=True),
    Question("fast", "params.numerics=fast, twice", (Plan("fast", FAST), Plan("fast again", FAST)), NEVER),
)

NAMES = tuple(question.name for question in QUESTIONS)
CHOICES = ("all", "everything", *NAMES)
