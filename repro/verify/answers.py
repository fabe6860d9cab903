"""Answers to the questions of one call.

Each is about one column of the table: a framework of the reference trainers, or a command of one's own.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from msgspec import UNSET, to_builtins

from repro.compare.comparison import Comparison
from repro.verify import results
from repro.verify.power import Power
from repro.verify.questions import NOT_ASKED, AnswerWord, Promise, Question, kept
from repro.verify.results import Cause, FirstDifference, GrowthPoint


@dataclass
class Answer:
    """The answer to a question, and what it rests on."""

    question: Question
    framework: str
    numerics: str
    """The arithmetic of a reference trainer, or what was typed."""
    answer: AnswerWord = NOT_ASKED
    reason: str | None = None
    """The reason that there is no answer, or what is not among its runs."""
    says: str | None = None
    """The evidence in words, where fingerprints do not say all."""
    comparison: Comparison | None = None
    """The first two runs that differ."""
    runs: list[str] = field(default_factory=list)
    """The names of those that were compared."""
    portable: bool = False
    """True if it is about a command with portable numerics."""
    power: Power | None = None
    """The faults that were planted to see whether they would be noticed."""

    @property
    def promised(self) -> Promise:
        """The promise of the question, in this arithmetic."""
        own = "portable" if self.portable else "deterministic"
        return self.question.promised(own if self.framework == results.COMMAND else self.numerics)

    @property
    def kept(self) -> bool | None:
        """True if the promise was kept; None without one, or without an answer."""
        return kept(self.promised, self.answer)

    def as_result(self) -> results.Answer:
        """The answer as results.json has it."""
        return results.Answer(
            says=UNSET if self.says is None else self.says,
            question=self.question.name,
            title=self.question.title,
            framework=self.framework,
            numerics=self.numerics,
            promise=self.promised,
            answer=self.answer,
            kept=self.kept,
            control=self.question.control,
            evidence=self.question.evidence,
            reason=self.reason,
            runs=self.runs,
            difference=as_result(self.comparison, self.runs) if self.comparison else None,
            controls=self.power.as_result() if self.power else UNSET,
        )

    def brief(self) -> dict[str, Any]:
        """The answer as `verify --json` writes it."""
        first = self.comparison.found if self.comparison else None
        return {
            "question": self.question.name,
            "answer": self.answer,
            "promised": self.promised,
            "first": first.as_json() if first else None,
            "why": self.says or self.reason,
        } | ({"controls": to_builtins(self.power.as_result())} if self.power else {})


def as_result(comparison: Comparison, runs: list[str]) -> FirstDifference | None:
    """The first difference as results.json has it. A command's run is named as its folder is."""
    folder = comparison.b.path.parent.name
    of_command = [name for name in runs if name.startswith(f"{results.COMMAND}/")]
    first, far = comparison.found, comparison.far
    if first is None:
        return None
    return FirstDifference(
        elements=far.elements if far else None,
        size=far.size if far else None,
        ulps=far.ulps if far else None,
        relative=far.relative if far else None,
        step=first.step,
        channel=first.channel,
        last_equal_step=first.equal_before,
        tensor=first.names[0] if first.names else None,
        growth=[GrowthPoint(**asdict(point)) for point in comparison.growth],
        causes=[Cause(**asdict(cause)) for cause in comparison.facts],
        ranks=first.ranks or UNSET,
        run=next((name for name in of_command if name.rpartition("/")[2] == folder), UNSET),
    )
