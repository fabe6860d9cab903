"""Questions about the reference trainers."""

from dataclasses import dataclass
from typing import Literal

from repro.verify.questions import NEVER, PLACE, PORTABLE_ONLY, Evidence, Question


@dataclass(frozen=True)
class TrainerChange:
    """One run of a trainer: what differs from the training as it is configured."""

    label: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the process."""
    course: Literal["straight", "kill", "epoch", "relay"] = "straight"
    """straight | kill (by SIGKILL in mid-run, resumed) | epoch (stopped after an epoch, resumed) | relay (each framework
    takes its share of the steps)."""
    overrides: tuple[str, ...] = ()
    """Keys of the configuration, over those that all runs of this verify have."""
    runtime: Literal["host", "docker", "apptainer", "qemu", "other"] = "host"
    """host | docker | apptainer | qemu (the label names the CPU) | other (each environment in verify.others)."""
    gpu: bool = False
    framework: str | None = None
    """The only framework that it is for; None: each."""


BASELINE = TrainerChange("as configured")
REPEAT = TrainerChange("again")


@dataclass(frozen=True)
class TrainerQuestion(Question):
    """A question about a framework, or about all of them: runs with a change each, compared with another run."""

    changes: tuple[TrainerChange, ...]
    base: TrainerChange = BASELINE
    """What the changes are compared with."""
    together: bool = False
    """Whether it is asked once, of all frameworks' runs together."""
    numerics: str | None = None
    """The only arithmetic that it is asked in."""
    evidence: Evidence = "fingerprint"

    @property
    def repeats(self) -> bool:
        """Whether it asks for nothing but the baseline once more."""
        return self.changes == (REPEAT,)


GPU = TrainerChange("on the GPU", overrides=("params.device=gpu",), gpu=True)
EPOCHS = ("params.batch_size_train=1000", "params.max_steps=80")  # an epoch of 60 steps, and 20 more
FAST = ("params.numerics=fast",)
ENTROPY = "params.seed=entropy"  # runs.py puts a number from the operating system there
UNSEEDED, UNSEEDED_REPEAT = (TrainerChange(label, overrides=(ENTROPY,)) for label in ("no seed", "no seed again"))
ELSEWHERE = (
    ("PYTHONHASHSEED", "77"),
    *PLACE,
    ("HOME", "/nowhere"),
    ("OMP_NUM_THREADS", "7"),
    ("TF_ENABLE_ONEDNN_OPTS", "0"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
)


def capped(label: str, framework: str, **environment: str) -> TrainerChange:
    """A framework whose libraries are set to use narrower vectors than the CPU has."""
    overrides = tuple(f'++environment.{name}="{value}"' for name, value in environment.items())
    return TrainerChange(label, overrides=overrides, framework=framework)


TRAINER_QUESTIONS = (
    TrainerQuestion("restart_cpu", "Restart on the CPU", (REPEAT,)),
    TrainerQuestion(
        "restart_gpu",
        "Restart on the GPU",
        (TrainerChange("on the GPU again", overrides=GPU.overrides, gpu=True),),
        base=GPU,
    ),
    TrainerQuestion(
        "resume_epoch",
        "Resume from a checkpoint between epochs",
        (TrainerChange("stopped after an epoch, resumed", overrides=EPOCHS, course="epoch"),),
        base=TrainerChange("two epochs", overrides=EPOCHS),
    ),
    TrainerQuestion(
        "resume_kill",
        "Resume in mid-epoch after SIGKILL",
        (TrainerChange("killed in mid-epoch, resumed", course="kill"),),
    ),
    TrainerQuestion(
        "workers",
        "Number of loader workers",
        (
            TrainerChange("1 worker", overrides=("params.num_workers=1",)),
            TrainerChange("3 workers", overrides=("params.num_workers=3",)),
        ),
    ),
    TrainerQuestion(
        "threads",
        "Number of threads",
        (
            TrainerChange("1 thread", overrides=("params.threads=1",)),
            TrainerChange("4 threads", overrides=("params.threads=4",)),
        ),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion("cpu_gpu", "CPU against GPU", (GPU,), promise=PORTABLE_ONLY),
    TrainerQuestion(
        "instruction_set",
        "Narrower vector instructions",
        (
            capped(
                "AVX2",
                "pytorch",
                ATEN_CPU_CAPABILITY="avx2",
                ONEDNN_MAX_CPU_ISA="AVX2",
                MKL_ENABLE_INSTRUCTIONS="AVX2",
                MKL_CBWR="AVX2",
            ),
            capped(
                "SSE4",
                "pytorch",
                ATEN_CPU_CAPABILITY="default",
                ONEDNN_MAX_CPU_ISA="SSE41",
                MKL_ENABLE_INSTRUCTIONS="SSE4_2",
                MKL_CBWR="COMPATIBLE",
            ),
            capped("AVX2", "tensorflow", ONEDNN_MAX_CPU_ISA="AVX2"),
            capped("without oneDNN", "tensorflow", TF_ENABLE_ONEDNN_OPTS="0"),
            capped("AVX2", "jax", XLA_FLAGS="--xla_cpu_max_isa=AVX2"),
            capped("SSE4", "jax", XLA_FLAGS="--xla_cpu_max_isa=SSE4_2"),
        ),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion(
        "emulated_cpu",
        "Emulated CPUs: Haswell, Sandy Bridge (no FMA), Nehalem (no AVX)",
        tuple(TrainerChange(model, runtime="qemu") for model in ("Haswell", "SandyBridge", "Nehalem")),
        promise=PORTABLE_ONLY,
        slow=True,
    ),
    TrainerQuestion(
        "other",
        "Another version or architecture (verify.others)",
        (TrainerChange("other", runtime="other"),),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion(
        "engines",
        "Host, Docker, Apptainer",
        (TrainerChange("in Docker", runtime="docker"), TrainerChange("in Apptainer", runtime="apptainer")),
    ),
    TrainerQuestion("process", "Another process environment", (TrainerChange("elsewhere", ELSEWHERE),)),
    TrainerQuestion(
        "evaluation",
        "Evaluation in other batches",
        (
            TrainerChange("one by one", overrides=("params.batch_size_test=1",)),
            TrainerChange("all at once", overrides=("params.batch_size_test=10000",)),
        ),
        promise=PORTABLE_ONLY,
        evidence="evaluation",
    ),
    TrainerQuestion(
        "products",
        "Matmul backends: float64, int8, int16",
        tuple(
            TrainerChange(f"{name} products", overrides=(f"params.engine={name}",))
            for name in ("float64", "int8", "int16")
        ),
        promise=PORTABLE_ONLY,
        numerics="portable",
    ),
    TrainerQuestion("frameworks", "The three frameworks against one another", (), promise=PORTABLE_ONLY, together=True),
    TrainerQuestion(
        "relay",
        "Started in one framework, finished in another",
        (TrainerChange("handed on", course="relay"),),
        promise=PORTABLE_ONLY,
        together=True,
    ),
    TrainerQuestion(
        "seed",
        "Control: another seed",
        (TrainerChange("another seed", overrides=("params.seed=1234567",)),),
        control=True,
    ),
    TrainerQuestion("unseeded", "Control: no seed", (UNSEEDED_REPEAT,), base=UNSEEDED, control=True),
    TrainerQuestion(
        "fast",
        "params.numerics=fast, twice",
        (TrainerChange("fast again", overrides=FAST),),
        promise=NEVER,
        base=TrainerChange("fast", overrides=FAST),
    ),
)

CHOICES = ("all", "everything", *(question.name for question in TRAINER_QUESTIONS))
