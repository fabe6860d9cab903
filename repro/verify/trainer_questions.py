"""Questions about the reference trainers."""

from functools import partial

from repro.verify.questions import NEVER, PLACE, PORTABLE_ONLY, REPEAT, TRAINER_BASELINE, Change, Question

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
