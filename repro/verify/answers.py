"""The answer to a question, about one column of the table: a framework of the suite, or a command of one's own."""

from dataclasses import dataclass, field
from typing import Any

from repro.compare.comparison import Comparison
from repro.verify.questions import NOT_ASKED, UNANSWERED, Question

Json = dict[str, Any]


@dataclass
class Answer:
    """What is said, and what it rests on."""

    question: Question
    framework: str
    numerics: str
    evidence: str = "fingerprint"
    """What must be the same, as results.json names it."""
    answer: str = NOT_ASKED
    reason: str | None = None
    """Why there is no answer, or what is not among its runs."""
    says: str | None = None
    """The evidence in words, where fingerprints do not say all."""
    comparison: Comparison | None = None
    """Of the first two runs that differ."""
    runs: list[str] = field(default_factory=list)
    """The names of those that were compared."""

    @property
    def promised(self) -> str | None:
        return self.question.promised(self.numerics)

    @property
    def kept(self) -> bool | None:
        """Whether the promise was kept; None without one, or without an answer."""
        if self.promised is None or self.answer in UNANSWERED:
            return None
        return self.answer == self.promised

    def as_json(self) -> Json:
        """As results.json has it."""
        told = {} if self.says is None else {"says": self.says}
        return told | {
            "question": self.question.name, "title": self.question.title, "framework": self.framework,
            "numerics": self.numerics, "promise": self.promised, "answer": self.answer, "kept": self.kept,
            "control": self.question.control, "evidence": self.evidence, "reason": self.reason,
            "runs": self.runs, "difference": self.comparison.as_json() if self.comparison else None,
        }  # fmt: skip

    def brief(self) -> Json:
        """As `verify --json` writes it."""
        found = self.comparison.found if self.comparison else None
        return {
            "question": self.question.name, "answer": self.answer, "promised": self.promised,
            "first": found.as_json() if found else None, "why": self.says or self.reason,
        }  # fmt: skip
