"""Questions about the reference trainers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from repro.verify.command_questions import AVX2, SSE4
from repro.verify.questions import NEVER, PLACE, PORTABLE_ONLY, REPEAT, Change, Question

BASELINE = Change("as configured")
VECTORS = {
    "pytorch": ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR"),
    "tensorflow": ("ONEDNN_MAX_CPU_ISA", "TF_ENABLE_ONEDNN_OPTS"),
    "jax": ("XLA_FLAGS",),
}
"""By framework, the variables that limit the vector instructions of its libraries."""


@dataclass(frozen=True)
class TrainerQuestion(Question):
    """A question about a framework, or about all of them."""

    base: Change = BASELINE
    compared: Literal["fingerprint", "evaluation"] = "fingerprint"
    together: bool = False
    """Whether it is asked once, of all frameworks' runs together."""
    numerics: str | None = None
    """The only arithmetic that it is asked in."""


def set_to(key: str, values: Mapping[str, object]) -> tuple[Change, ...]:
    """By label, a change for each value of a key."""
    return tuple(Change(label, overrides=(f"{key}={value}",)) for label, value in values.items())


def capped(label: str, framework: str, variables: Iterable[tuple[str, str]]) -> Change:
    """A framework whose libraries are set to use narrower vectors than the CPU has."""
    own = [f'++environment.{name}="{value}"' for name, value in variables if name in VECTORS[framework]]
    return Change(label, overrides=tuple(own), framework=framework)


GPU, GPU_REPEAT = set_to("params.device", {"on the GPU": "gpu", "on the GPU again": "gpu"})
EPOCHS = ("params.batch_size_train=1000", "params.max_steps=80")  # an epoch of 60 steps, and 20 more
ENTROPY = "params.seed=entropy"  # runs.py puts a number from the operating system there
UNSEEDED, UNSEEDED_REPEAT = set_to("params.seed", {"no seed": "entropy", "no seed again": "entropy"})
FAST, FAST_REPEAT = set_to("params.numerics", {"fast": "fast", "fast again": "fast"})
ELSEWHERE = (
    ("PYTHONHASHSEED", "77"),
    *PLACE,
    ("HOME", "/nowhere"),
    ("OMP_NUM_THREADS", "7"),
    ("TF_ENABLE_ONEDNN_OPTS", "0"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
)

TRAINER_QUESTIONS = (
    TrainerQuestion("restart_cpu", "Restart on the CPU", (REPEAT,)),
    TrainerQuestion("restart_gpu", "Restart on the GPU", (GPU_REPEAT,), base=GPU),
    TrainerQuestion(
        "resume_epoch",
        "Resume from a checkpoint between epochs",
        (Change("stopped after an epoch, resumed", overrides=EPOCHS, course="epoch"),),
        base=Change("two epochs", overrides=EPOCHS),
    ),
    TrainerQuestion(
        "resume_kill",
        "Resume in mid-epoch after SIGKILL",
        (Change("killed in mid-epoch, resumed", course="kill"),),
    ),
    TrainerQuestion(
        "workers", "Number of loader workers", set_to("params.num_workers", {"1 worker": 1, "3 workers": 3})
    ),
    TrainerQuestion(
        "threads",
        "Number of threads",
        set_to("params.threads", {"1 thread": 1, "4 threads": 4}),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion("cpu_gpu", "CPU against GPU", (GPU,), promise=PORTABLE_ONLY),
    TrainerQuestion(
        "instruction_set",
        "Narrower vector instructions",
        (
            capped("AVX2", "pytorch", AVX2),
            capped("SSE4", "pytorch", SSE4),
            capped("AVX2", "tensorflow", AVX2),
            capped("without oneDNN", "tensorflow", [("TF_ENABLE_ONEDNN_OPTS", "0")]),
            capped("AVX2", "jax", AVX2),
            capped("SSE4", "jax", SSE4),
        ),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion(
        "emulated_cpu",
        "Emulated CPUs: Haswell, Sandy Bridge (no FMA), Nehalem (no AVX)",
        tuple(Change(model, runtime="qemu") for model in ("Haswell", "SandyBridge", "Nehalem")),
        promise=PORTABLE_ONLY,
        slow=True,
    ),
    TrainerQuestion(
        "other",
        "Another version or architecture (verify.others)",
        (Change("other", runtime="other"),),
        promise=PORTABLE_ONLY,
    ),
    TrainerQuestion(
        "engines",
        "Host, Docker, Apptainer",
        (Change("in Docker", runtime="docker"), Change("in Apptainer", runtime="apptainer")),
    ),
    TrainerQuestion("process", "Another process environment", (Change("elsewhere", ELSEWHERE),)),
    TrainerQuestion(
        "evaluation",
        "Evaluation in other batches",
        set_to("params.batch_size_test", {"one by one": 1, "all at once": 10000}),
        promise=PORTABLE_ONLY,
        compared="evaluation",
    ),
    TrainerQuestion(
        "products",
        "Matmul backends: float64, int8, int16",
        set_to("params.engine", {f"{name} products": name for name in ("float64", "int8", "int16")}),
        promise=PORTABLE_ONLY,
        numerics="portable",
    ),
    TrainerQuestion("frameworks", "The three frameworks against one another", (), promise=PORTABLE_ONLY, together=True),
    TrainerQuestion(
        "relay",
        "Started in one framework, finished in another",
        (Change("handed on", course="relay"),),
        promise=PORTABLE_ONLY,
        together=True,
    ),
    TrainerQuestion("seed", "Control: another seed", set_to("params.seed", {"another seed": 1234567}), control=True),
    TrainerQuestion("unseeded", "Control: no seed", (UNSEEDED_REPEAT,), base=UNSEEDED, control=True),
    TrainerQuestion("fast", "params.numerics=fast, twice", (FAST_REPEAT,), base=FAST, promise=NEVER),
)

CHOICES = ("all", "everything", *(question.name for question in TRAINER_QUESTIONS))
