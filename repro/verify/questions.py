"""Questions, and the words of their answers.

A question is a declaration: what is changed, what the runs need, what is compared and what is promised. It does not know how
a change is carried out: command_runs.py does that for a command, repro/trainers/verify/runs.py for a reference trainer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from repro.machine import facts

Compared = Literal[
    "steps",
    "outputs",
    "resumed",
    "varied",
    "batch",
    "ranks",
    "filled",
    "slowed",
    "listed",
    "clocked",
    "cold",
    "alone",
    "fingerprint",
    "evaluation",
]
AnswerWord = Literal["same", "differs", "cannot tell", "not asked"]
Promise = Literal["same", "differs"] | None
Evidence = Literal["fingerprint", "evaluation", "record"]
"""The evidence that must be the same: every bit of the weights, or of loss and accuracy, or a whole record."""

SAME: Literal["same"] = "same"
DIFFERS: Literal["differs"] = "differs"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
NOT_ASKED: Literal["not asked"] = "not asked"
UNANSWERED = (NOT_ASKED, CANNOT_TELL)
SHOWN = {CANNOT_TELL: "inconclusive", NOT_ASKED: "skipped"}  # results.json keeps the words of schema 1

# What a promise holds for: (deterministic, portable). `fast` promises nothing, except that controls differ. A command
# is held to what `deterministic` promises, and with portable numerics to what these do.
ALWAYS: tuple[Promise, Promise] = (SAME, SAME)
PORTABLE_ONLY: tuple[Promise, Promise] = (None, SAME)
NEVER: tuple[Promise, Promise] = (None, None)


def shown(answer: str) -> str:
    """The word that people read for an answer."""
    return SHOWN.get(answer, answer)


def kept(promise: Promise, answer: str) -> bool | None:
    """True if a promise was kept; None without one, or without an answer."""
    return None if promise is None or answer in UNANSWERED else promise == answer


@cache
def _instruction_set() -> str | None:
    """The widest vector instructions of this CPU."""
    widest: str | None = facts.hardware()["cpu"]["instruction_set"]
    return widest


@dataclass(frozen=True)
class Change:
    """One run: what differs from the training as it stands.

    A command and a reference trainer each can carry out a part of these; a test holds their questions to it.
    """

    label: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the process. To a command's own XLA_FLAGS or GLIBC_TUNABLES, a value is added."""
    course: Literal["straight", "kill", "stop", "epoch", "relay", "resumed", "alone"] = "straight"
    """straight | kill (by SIGKILL in mid-run, resumed) | stop (by SIGTERM, resumed) | epoch (ended after an epoch,
    resumed) | relay (each framework takes its share of the steps) | resumed (goes on where another run was stopped) |
    alone (one training of several, by a command of its own)."""
    stopped: str = ""
    """The label of the run that a resumed one goes on from."""
    fault: str | None = None
    """The part that is put back to its first value in a resumed run."""
    until: int | None = None
    """The step after which nothing of the run is of interest."""
    stops: tuple[float, ...] = ()
    """The shares of the steps after which it is stopped, and then resumed."""
    at_border: bool = False
    """True if the first of them is moved to where an epoch begins, if that is seen."""
    window: float | None = None
    """The share of the steps from which on it is stopped sooner, if a checkpoint is written between two backward passes.

    Where steps have several, it is stopped between two of them in any case."""
    observed: bool = True
    cores: int | None = None
    seed: str | None = None
    option: tuple[str, str] | None = None
    """An option of the command, with {} where its value goes, and the value."""
    overrides: tuple[str, ...] = ()
    """KEY=VALUE of the trainers' configuration, over those that all runs of this verify have."""
    caches: Literal["kept", "emptied", "left"] = "kept"
    """kept | emptied (the usual caches, and what earlier runs left outside of their folders) | left (as a run with emptied
    ones left them)."""
    clock: str | None = None
    """The clock that all processes get, as the program faketime reads it; without that program, `environment` has it."""
    runtime: Literal["host", "image", "docker", "apptainer", "qemu", "other"] = "host"
    """host | image (the one that --image names) | docker, apptainer (the trainers' images) | qemu (the label names the
    CPU) | other (each environment in verify.others)."""
    narrowed_to: str | None = None
    """Vector instructions that libraries are limited to, as facts.INSTRUCTION_SETS names them."""
    framework: str | None = None
    """The only framework that it is for; None: each."""

    @property
    def possible(self) -> bool:
        """True if it would change anything on this machine."""
        if self.narrowed_to is None:
            return True
        widths, own = [*facts.INSTRUCTION_SETS], _instruction_set()
        return own is not None and widths.index(own) < widths.index(self.narrowed_to)


BASELINE = Change("as it stands")
REPEAT = Change("again")
FULLY_HASHED = Change("every step hashed")  # what a resumed command is compared with, where --every leaves steps out


@dataclass(frozen=True)
class Question:
    """A question and its promise: runs with a change each, compared with another run."""

    name: str
    title: str
    changes: tuple[Change, ...]
    base: Change = BASELINE
    """What the changes are compared with."""
    promise: tuple[Promise, Promise] = ALWAYS
    control: bool = False
    """True if it must differ: one that came out the same would show that the check cannot fail."""
    slow: bool = False
    """True if it takes long, so that it is asked only by name."""
    obstacle: Callable[[], str | None] = lambda: None
    """A function that returns what this machine lacks for it."""
    needs: Literal["resume", "image", "seed_option", "alone"] | None = None
    """The option of `verify` that must be given."""
    compared: Compared = "steps"
    """steps (and outputs, with the baseline's) | outputs (or printed text alone) | resumed (steps, with those of a fully
    hashed baseline) | varied (steps, and those outputs that the baseline has, too) | batch (metrics and rows of files, up
    to order) | ranks (samples of all ranks, and the weights of the first) | filled (steps, of runs whose memory is filled,
    with each other, too) | slowed (steps, where something ran beside the first thread) | listed (steps, where a folder was
    listed) | clocked (steps, of runs with another clock) | cold (steps, with emptied caches, and with what such a run
    left) | alone (steps, metrics and files, of one training of several) | fingerprint, evaluation (what a reference trainer says of itself)."""
    twice: bool = False
    """True if another question that is asked resumes a second time, so that this one need not say that it does not."""
    meaning: str = ""
    """The meaning of a difference, as this question changes nothing else; a resumed run's records show it."""
    sameness: str = ""
    """The meaning of sameness, if it is not that so much was compared."""

    @property
    def evidence(self) -> Evidence:
        """The evidence that must be the same, as results.json names it."""
        return self.compared if self.compared in ("fingerprint", "evaluation") else "record"

    @property
    def repeats(self) -> bool:
        """True if it asks only for the baseline once more."""
        return self.changes == (REPEAT,)

    @property
    def resumes(self) -> bool:
        """True if its runs are stopped, and resumed by a command of their own."""
        return self.compared == "resumed"

    @property
    def hashes_all(self) -> bool:
        """True if its runs are compared with a baseline of which every step is hashed."""
        return self.compared in ("resumed", "alone")

    @property
    def possible_changes(self) -> tuple[Change, ...]:
        """The changes that this machine can make."""
        return tuple(change for change in self.changes if change.possible)

    def promised(self, numerics: str) -> Promise:
        """The promise for a training with this arithmetic: fast, deterministic or portable."""
        if self.control:
            return DIFFERS
        return {"fast": None, "portable": self.promise[1]}.get(numerics, self.promise[0])


PLACE = (
    ("LANG", "tr_TR.UTF-8"),
    ("LC_ALL", "POSIX"),
    ("TZ", "Asia/Tokyo"),
    ("USER", "somebody"),
    ("LOGNAME", "somebody"),
)
"""A locale, a time zone and a user that nobody has."""
