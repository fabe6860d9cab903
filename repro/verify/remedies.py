"""Remedies that `verify --cure` knows: what each sets, what it can mend, the lines that a user adds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from repro.frameworks import FRAMEWORKS
from repro.verify.command_questions import AVX2, THREADS, UNCACHED, no_fill

ZEROED = (("MALLOC_PERTURB_", "255"), UNCACHED)
"""The GNU C library fills fresh memory with the complement of the byte."""
DRAWS = ("batch", "generator", "initial weights")
SUMS = ("gradients", "optimizer", "weights", "buffers")
SEEDS = {
    "random": "import random; random.seed(0)",
    "numpy": "import numpy; numpy.random.seed(0)",
    "default_rng": "a seed for each numpy.random.default_rng()",
    "torch": "import torch; torch.manual_seed(0)",
    "tensorflow": "import tensorflow; tensorflow.random.set_seed(0)",
}
"""The line that seeds each module."""
MODES = {
    "torch": (
        "torch.use_deterministic_algorithms(True)",
        "torch.utils.deterministic.fill_uninitialized_memory = False",
        "torch.backends.cudnn.benchmark = False",
    ),
    "tensorflow": ("tensorflow.config.experimental.enable_op_determinism()",),
}
"""The lines that enable the deterministic mode of each framework."""


@dataclass(frozen=True)
class Remedy:
    """A change that may make runs the same."""

    name: str
    variables: tuple[tuple[str, str], ...] = ()
    injected: tuple[str, str] | None = None
    """A variable that repro/inject/ reads, and its value."""
    portable: bool = False
    """True for portable numerics."""
    script: tuple[str, ...] = ()
    """Lines to add to the script; those to add to the shell follow from the variables."""
    channels: tuple[str, ...] = DRAWS + SUMS
    """The channels in which runs that it repairs most likely differ first."""
    questions: tuple[str, ...] = ()
    """Questions whose difference it can mend; the one that repeats, too."""

    @property
    def lines(self) -> list[str]:
        """The lines that a user adds, each with where it goes."""
        shell = " ".join(f"{name}='{value}'" if " " in value else f"{name}={value}" for name, value in self.variables)
        added = [f"shell: export {shell}"] if shell else []
        added += ["shell: repro portable -- before the command"] if self.portable else []
        return [*added, *(f"script: {line}" for line in self.script)]


def known(frameworks: Collection[str]) -> list[Remedy]:
    """Remedies for a command that uses these frameworks, the cheapest first."""
    modules = ["random", "numpy", "default_rng", *(name for name in ("torch", "tensorflow") if name in frameworks)]
    remedies = [
        Remedy("PYTHONHASHSEED", (("PYTHONHASHSEED", "0"),), channels=DRAWS, questions=("restart", "hash_seed")),
        Remedy(
            "seeds",
            injected=("REPRO_CHANGES", "seed=0"),
            script=("before all else, of what it uses:", *(SEEDS[name] for name in modules)),
            channels=DRAWS,
            questions=("restart",),
        ),
        Remedy(
            "sorted listings",
            injected=("REPRO_REMEDIES", "sorted_listings"),
            script=("sorted(...) around os.listdir, os.scandir, glob.glob, Path.iterdir and Path.glob",),
            channels=DRAWS,
            questions=("restart", "file_order"),
        ),
    ]
    if no_fill() is None:
        remedies.append(
            Remedy(
                "initialized memory",
                ZEROED,
                script=("better: initialize what torch.empty or numpy.empty makes and nothing fills",),
                questions=("restart", "memory"),
            )
        )
    if mode := _deterministic(frameworks):
        remedies.append(mode)
    remedies.append(
        Remedy(
            "one thread",
            tuple((name, "1") for name in THREADS),
            channels=SUMS,
            questions=("restart", "threads", "cores", "races"),
        )
    )
    remedies.append(Remedy("AVX2", AVX2, channels=(), questions=("instruction_set",)))
    if "torch" in frameworks:
        remedies.append(
            Remedy(
                "portable numerics",
                portable=True,
                channels=SUMS,
                questions=("restart", "threads", "cores", "instruction_set", "gpu", "container"),
            )
        )
    return remedies


def _deterministic(frameworks: Collection[str]) -> Remedy | None:
    """The deterministic modes of the frameworks; None where they have none."""
    lines = [line for name in MODES if name in frameworks for line in MODES[name]]
    modules = {known.module: known.deterministic for known in FRAMEWORKS.values()}
    variables = [pair for name, pairs in modules.items() if name in frameworks for pair in pairs.items()]
    if not lines and not variables:
        return None
    return Remedy(
        "deterministic mode",
        tuple(variables),
        injected=("REPRO_REMEDIES", "deterministic"),
        script=tuple(lines),
        channels=SUMS,
        questions=("restart", "gpu"),
    )


def environment(remedies: Sequence[Remedy]) -> tuple[tuple[str, str], ...]:
    """The variables of several together."""
    injected: dict[str, list[str]] = {}
    for name, value in (remedy.injected for remedy in remedies if remedy.injected):
        injected.setdefault(name, []).append(value)
    variables = [pair for remedy in remedies for pair in remedy.variables]
    return (*variables, *((name, ",".join(values)) for name, values in injected.items()))
