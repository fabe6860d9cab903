"""Settings of a process that must not change a bit, each varied alone; and those that results are compared with."""

from dataclasses import dataclass

from repro.verify.command_questions import SSE4, THREADS

TENSORFLOW_WITHOUT_ONEDNN = (("TF_ENABLE_ONEDNN_OPTS", "0"),)


@dataclass(frozen=True)
class Setting:
    """How a process computes the calls."""

    name: str
    threads: int = 1
    switches: tuple[tuple[str, str], ...] = ()
    kernels: bool = True
    """Whether kernels are compiled, by llvmlite."""
    portable: bool = True
    double: bool = False
    """Whether floating-point arguments are in float64."""

    def environment(self) -> dict[str, str]:
        """Variables; the order of a set of texts, by which a framework's own samples go, is one, too."""
        return {name: str(self.threads) for name in THREADS} | {"PYTHONHASHSEED": "0"} | dict(self.switches)


BASE = Setting("base")
VARIED = (
    Setting("four threads", threads=4),
    Setting("no llvmlite", kernels=False),
    Setting("narrow instructions", switches=(*SSE4, *TENSORFLOW_WITHOUT_ONEDNN)),
)
"""Each differs from BASE in one thing."""
NATIVE = Setting("native", portable=False)
"""The framework's own results: what it takes, and what its results are like."""
DOUBLE = Setting("double", portable=False, double=True)
"""The framework's own results in float64, beside which errors are measured."""
SETTINGS = {each.name: each for each in (BASE, NATIVE, DOUBLE, *VARIED)}
"""All, in the order in which they are run: wrong values are known first."""
