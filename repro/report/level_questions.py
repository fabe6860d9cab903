"""The six levels, and the questions that decide each."""

from collections.abc import Iterable
from dataclasses import dataclass

from repro.verify import machines
from repro.verify.questions import CANNOT_TELL, DIFFERS, NOT_ASKED, SAME, AnswerWord
from repro.verify.results import COMMAND

AUDIT = "audit"


@dataclass(frozen=True)
class Level:
    """A level, and the questions that decide it."""

    number: int
    name: str
    of_command: tuple[str, ...]
    """The questions about a command."""
    of_trainer: tuple[str, ...]
    """The questions about a reference trainer."""
    also: tuple[str, ...] = ()
    """Questions that need not be asked, but hold the level back where they differ."""
    with_gpu: tuple[str, ...] = ()
    """Further questions about a command on a machine that has a GPU."""
    one_suffices: bool = False
    """True if one answer is enough: then questions without one do not count."""

    def needed(self, framework: str, gpu: bool) -> tuple[str, ...]:
        """The questions that must be *same* for a command, or for a reference trainer."""
        if framework != COMMAND:
            return self.of_trainer
        return (*self.of_command, *self.with_gpu) if gpu else self.of_command

    def counted(self, answers: Iterable[AnswerWord]) -> AnswerWord:
        """The answer that counts of several to one question: the worst one."""
        order = [DIFFERS, CANNOT_TELL, SAME, NOT_ASKED]
        if self.one_suffices:
            order = [DIFFERS, SAME, CANNOT_TELL, NOT_ASKED]
        return min(answers, key=order.index, default=NOT_ASKED)


LEVELS = (
    Level(
        1,
        "again",
        ("restart",),
        ("restart_cpu",),
        (
            "observed",
            "hash_seed",
            "environment",
            "file_order",
            "memory",
            "cold",
            "races",
            "time",
            "restart_gpu",
            "process",
        ),
    ),
    Level(2, "resumed and killed", ("resume", "kill"), ("resume_epoch", "resume_kill"), ("resume_twice",)),
    Level(3, "other thread counts", ("threads", "cores"), ("threads", "workers"), ("workers",)),
    Level(
        4,
        "other instruction sets",
        ("instruction_set",),
        ("instruction_set",),
        ("gpu", "cpu_gpu", "emulated_cpu"),
        with_gpu=("gpu",),
    ),
    Level(
        5,
        "another machine or container",
        ("container", machines.QUESTION),
        ("engines", machines.QUESTION),
        one_suffices=True,
    ),
    Level(6, "audited by somebody else", (AUDIT,), (AUDIT,), one_suffices=True),
)
HIGHEST = LEVELS[-1].number
