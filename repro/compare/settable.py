"""Facts that differ between two records and that a rerun can set: options, variables, portable numerics.

Packages are in environments.py, commits in commits.py.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from repro.compare import variables
from repro.record.injection import Portable
from repro.record.record import Record

OPTION, WORD, VARIABLE, PACKAGE, COMMIT = "option", "word", "variable", "package", "commit"
NUMERICS = "portable numerics"
FLAGS = re.compile("-[bBdEiIOPqsSuvx]+")
Unit = tuple[str, ...]
"""An option of a command with its value, in one word or two; or a word of another kind."""


@dataclass(frozen=True)
class Fact:
    """A fact that differs between two records, and can be set to either value."""

    kind: str
    name: str
    a: Any
    b: Any
    number: int = 0
    """Its place among the options of a command."""

    def __str__(self) -> str:
        """The fact in words."""
        return f"{self.called}: {self._shown(self.a)} in A, {self._shown(self.b)} in B"

    @property
    def called(self) -> str:
        """The kind and the name."""
        return f"{self.kind} {self.name}" if self.name else self.kind

    def _shown(self, value: Any) -> str:
        return _shown(value).removeprefix(f"{self.name}==")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Portable):
        return " ".join(value.words[1:-1])
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return text[:12] if len(text) == 40 and text.isalnum() else text


@dataclass(frozen=True)
class Words:
    """The words of two commands side by side, and which of them differ."""

    pairs: tuple[tuple[Unit, Unit, Fact | None], ...]
    """A's unit, B's unit, and the fact in which they differ, or None."""

    @property
    def facts(self) -> list[Fact]:
        return [fact for _, _, fact in self.pairs if fact]

    def of(self, chosen: Iterable[Fact]) -> list[str]:
        """The command with the chosen facts as in B, all others as in A."""
        as_in_b = set(chosen)
        return [word for a, b, fact in self.pairs for word in (b if fact in as_in_b else a)]


def words(a: Sequence[str], b: Sequence[str]) -> Words:
    """Two commands side by side: options by their names, wherever they stand, other words by their order."""
    ours, theirs = units(a), units(b)
    beside = _side_by_side(ours, theirs)
    slots: list[tuple[int | None, int | None]] = [(place, beside.get(place)) for place in range(len(ours))]
    for place in range(len(theirs)):
        if place not in beside.values():  # only B has it: after the word that it follows there
            before = next((n for n, slot in enumerate(slots) if slot[1] == place - 1), -1)
            slots.insert(before + 1, (None, place))
    pairs = []
    for number, (i, j) in enumerate(slots):
        x, y = () if i is None else ours[i], () if j is None else theirs[j]
        name = _name(x or y)
        fact = Fact(OPTION if name else WORD, name, x or None, y or None, number) if x != y else None
        pairs.append((x, y, fact))
    return Words(tuple(pairs))


def _side_by_side(ours: Sequence[Unit], theirs: Sequence[Unit]) -> dict[int, int]:
    """The unit of B beside each unit of A, by its place."""
    lines: dict[int, int] = {}
    for i, unit in enumerate(ours):
        same = (j for j, other in enumerate(theirs) if _name(other) == _name(unit) and j not in lines.values())
        if _name(unit) and (match := next(same, None)) is not None:
            lines[i] = match
    a, b = ([n for n, unit in enumerate(side) if not _name(unit)] for side in (ours, theirs))
    matcher = difflib.SequenceMatcher(None, [ours[n] for n in a], [theirs[n] for n in b], autojunk=False)
    for _, start, end, first, last in matcher.get_opcodes():
        lines |= dict(zip(a[start:end], b[first:last], strict=False))
    return lines


def units(words: Sequence[str]) -> list[Unit]:
    """A command cut into options with their values, and other words."""
    result: list[Unit] = []
    left = list(words)
    while left:
        word = left.pop(0)
        flag = len(result) == 1 and FLAGS.fullmatch(word)  # options of Python itself, before the script
        takes = word.startswith("-") and "=" not in word and not flag and left and not left[0].startswith("-")
        result.append((word, left.pop(0)) if takes else (word,))
    return result


def _name(unit: Unit) -> str:
    """The name of an option; a word without one is called by its place alone."""
    name, sign, _ = unit[0].partition("=")
    return name if sign or unit[0].startswith("-") else ""


def of_variables(a: Record, b: Record) -> list[Fact]:
    """Variables that differ, and that a rerun sets."""
    ours, theirs = (one.facts.get("environment") or {} for one in (a, b))
    return [
        Fact(VARIABLE, name, ours.get(name), theirs.get(name))
        for name in sorted(ours | theirs)
        if ours.get(name) != theirs.get(name)
        and all(variables.taken({name: side[name]}) for side in (ours, theirs) if name in side)
    ]


def of_numerics(a: Portable | None, b: Portable | None) -> list[Fact]:
    """The fact of portable numerics, if one of two alone has them, or with other options."""
    return [Fact(NUMERICS, "", a, b)] if a != b else []
