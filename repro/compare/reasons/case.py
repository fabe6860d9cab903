"""Rules, and what they look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from repro.compare.difference import Difference
from repro.compare.names import number_of
from repro.compare.pairs import Pair
from repro.record.lines import SCALARS
from repro.text import listed

Evidence = Literal["hashes", "runs", "arrays", "guess"]

HASHES: Literal["hashes"] = "hashes"
RUNS: Literal["runs"] = "runs"
ARRAYS: Literal["arrays"] = "arrays"
GUESS: Literal["guess"] = "guess"


@dataclass(frozen=True)
class Reason:
    """A reason in words; `guess` if the hashes allow another one as well."""

    text: str
    guess: bool = False
    rule: str = ""
    """The name of the rule that gave it."""

    def __str__(self) -> str:
        return f"{self.text} (a guess)" if self.guess else self.text


@dataclass(frozen=True)
class Rule:
    """A cause: how it is known, and what helps."""

    name: str
    evidence: Evidence
    """hashes (of both runs prove it) | runs (made for it show it, and could have shown the opposite) |
    arrays (both sides' values follow from the formulas that are named) | guess."""
    remedy: str
    meaning: str
    """One sentence for docs/reference/causes.md."""
    known: Callable[..., str | None]

    def __call__(self, *given: Any) -> Reason | None:
        """The reason of a difference, or None where this rule does not know it."""
        text = self.known(*given)
        return None if text is None else Reason(text, self.evidence == GUESS, self.name)


def rule(evidence: Evidence, remedy: str = "") -> Callable[[Callable[..., str | None]], Rule]:
    """A rule, made of a function that gives the words: its name is the rule's, its docstring what it means."""

    def made(known: Callable[..., str | None]) -> Rule:
        name = known.__name__.replace("_", " ")
        return Rule(name, evidence, remedy, " ".join((known.__doc__ or "").split()), known)

    return made


@dataclass(frozen=True)
class Case:
    """The first difference of two processes, and what the hashes around it say."""

    found: Difference
    pair: Pair
    step: int

    @property
    def channel(self) -> str:
        return self.found.channel

    @property
    def names(self) -> str:
        """The first few names that differ."""
        return listed(self.found.names)

    @property
    def first_resumed(self) -> bool:
        """True at the first step of a resumed run."""
        return self.pair.offset > 0 and self.step == self.pair.offset + 1

    @property
    def resumed(self) -> bool:
        """True at the first step of a resumed run, or at the weights that it starts from."""
        return self.first_resumed or (self.pair.offset > 0 and self.step == self.pair.offset)

    @property
    def draws(self) -> bool:
        """True if a batch or the state of a generator is the first to differ."""
        return self.channel in ("batch", "generator")

    @property
    def batch_unseen(self) -> bool:
        return self.pair.hashes(self.step, "batch") is None

    @property
    def and_batch(self) -> str:
        """The batch in words, after `equal weights`."""
        return " (the batch cannot be seen)" if self.batch_unseen else " and an equal batch"

    @property
    def options_are_equal(self) -> bool:
        """True if the options of the optimizer's groups, such as the learning rate, were seen at this step and are equal."""
        both = self.pair.hashes(self.step, SCALARS)
        seen = both is not None and any(number_of(name) for name in both[0].keys() & both[1].keys())
        return seen and not any(number_of(name) for name in self.pair.differing(self.step, SCALARS))

    def differing_of(self, channel: str) -> list[str]:
        """The names that differ, if this channel comes first; buffers also where results do, and no gradient says why."""
        if self.channel == channel:
            return list(self.found.names)
        unseen = self.pair.hashes(self.step, "gradients") is None
        beside = channel == "buffers" and self.channel in ("optimizer", "weights") and unseen
        return self.pair.differing(self.step, channel) if beside else []

    @property
    def generators(self) -> list[str]:
        """The generators that differ at this step, of those that are drawn from."""
        return self.drawn_from(self.step)

    def drawn_from(self, step: int) -> list[str]:
        """The generators that differ at a step, of those that are drawn from."""
        moving = self.pair.a.moving() | self.pair.b.moving()
        return [name for name in self.pair.differing(step, "generator") if name in moving]

    @property
    def unlike_at_first(self) -> list[str]:
        """The generators that differ before the first step, where nothing later shows whether they are drawn from."""
        later = any(step > 1 for one in (self.pair.a, self.pair.b) for step in one.of("generator"))
        return [] if self.pair.offset or later else self.pair.differing(0, "generator")

    @property
    def tensorflow_is_unseeded(self) -> bool:
        """True if TensorFlow was used, and no run ever had the generator that tf.random.set_seed makes."""
        runs = (self.pair.a, self.pair.b)
        seeded = any("tensorflow" in states for one in runs for states in one.of("generator").values())
        return not seeded and all("tensorflow" in one.about.frameworks for one in runs)
