"""Comparison of the files of two runs by what they hold: which are equal, and the key that differs first.

Files that --output names are compared by their bytes. All others, which lie in a run's own folder, are compared by their
values: what holds times, paths or ids alone is set aside, and why is said.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from repro.compare import incidental
from repro.compare.pairs import natural
from repro.record.record import Record
from repro.text import MOST_NAMES, counted

VARYING = re.compile(r"\d{4}-?\d\d-?\d\d([-_T ]?\d\d[-:.h]?\d\d([-:.m]?\d\d)?)?|[0-9a-f]{8,}|\d{5,}")
"""Parts of a name that are other ones in each run: a date, a random number."""
EVENTS = re.compile(r"(events\.out\.tfevents)\..*")  # the time, the host and the process follow
SAME_CONTENT = "the same content, other bytes"
ONE_RUN = "only one run wrote it"
NO_WEIGHT = "no array with the shape of a weight"
NOT_FINAL = "not written after the last step of both"

Keys = Mapping[str, str] | None


@dataclass
class Files:
    """The files of two runs."""

    equal: list[str] = field(default_factory=list)
    """Those whose content is equal."""
    but_for: dict[str, str] = field(default_factory=dict)
    """Those that are equal but for times and the like: by name, in which keys."""
    differing: dict[str, str] = field(default_factory=dict)
    """Those that differ in what was trained: by name, in which key."""
    aside: dict[str, str] = field(default_factory=dict)
    """Those that are not compared: by name, why."""

    @property
    def notes(self) -> list[str]:
        """The files that are not compared, or not as a whole, in words."""
        groups = ("equal but for times and the like", self.but_for), ("not compared", self.aside)
        return [f"{what}: {_named(which)}" for what, which in groups if which]


def _named(reasons: Mapping[str, str]) -> str:
    """The first few names with their reasons."""
    named = [f"`{name}` ({why})" for name, why in [*reasons.items()][:MOST_NAMES]]
    more = f" and {len(reasons) - MOST_NAMES} more" if len(reasons) > MOST_NAMES else ""
    return ", ".join(named) + more


def compare(a: Record, b: Record, lenient: bool = False) -> Files:
    """Compares the files in the folders of two runs.

    `lenient`: one was resumed, or had another option, and may have written checkpoints at other steps, and other logs.
    """
    files, matched = Files(), _matched(a, b)
    shapes = _shapes(a, b, matched) if lenient else None
    for name in sorted(a.written, key=natural):
        other = matched.get(name)
        if other is None:
            files.aside[name] = ONE_RUN
            continue
        ours, their = a.written[name], b.written[other]
        if ours.sha256 == their.sha256:
            files.equal.append(name)
        elif lenient and not (ours.final and their.final):
            files.aside[name] = NOT_FINAL
        else:
            add(files, name, a.keys_of(name), b.keys_of(other), shapes)
    files.aside |= dict.fromkeys(sorted(b.written.keys() - {*matched.values()}, key=natural), ONE_RUN)
    return files


def _shapes(a: Record, b: Record, matched: Mapping[str, str]) -> set[str]:
    """The types and shapes of arrays that are equal in both runs, as weights are whose steps are equal."""
    both = [(a.keys_of(name) or {}, b.keys_of(other) or {}) for name, other in matched.items()]
    return {
        incidental.kind(value)
        for ours, theirs in both
        for key, value in incidental.weights(ours).items()
        if theirs.get(key) == value
    }


def add(files: Files, name: str, ours: Keys, theirs: Keys, shapes: set[str] | None = None) -> None:
    """Adds a file whose bytes differ; `shapes`: those of weights, where logs and all else may differ."""
    if ours is None or theirs is None:
        if shapes is not None or not incidental.holds_model(name):
            files.aside[name] = incidental.unread(name)
        else:
            files.differing[name] = f"`{name}` differs, in a format whose keys are not read"
        return
    keys = _differing(ours, theirs)
    reasons = {key: _reason(incidental.named(key, name), ours.get(key), theirs.get(key), shapes) for key in keys}
    counting = [key for key in keys if reasons[key] is None]
    if counting:
        files.differing[name] = _in_key(name, counting, ours, theirs)
    elif keys:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        partly = shapes is None and len(keys) < len({*ours, *theirs})
        (files.but_for if partly else files.aside)[name] = f"{reasons[keys[0]]}: `{keys[0]}`{more}"
    else:
        files.equal.append(name)


def _reason(key: str, ours: str | None, theirs: str | None, shapes: set[str] | None) -> str | None:
    """The reason that a value which differs does not count."""
    alike = ours and theirs and incidental.kind(ours) == incidental.kind(theirs)
    if shapes is not None and not (alike and incidental.kind(ours or "") in shapes):
        return NO_WEIGHT
    return incidental.set_aside(key, ours, theirs)


def _differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The keys that differ, in the order of the files."""
    return [key for key in [*ours, *(key for key in theirs if key not in ours)] if ours.get(key) != theirs.get(key)]


def _in_key(name: str, keys: list[str], ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first key that differs, and how many do."""
    key, number = keys[0], len({*ours, *theirs})
    values = _both(ours.get(key), theirs.get(key))
    return f"`{name}` differs first in `{key}` ({values}; {len(keys)} of {counted(number, 'value')} differ)"


def _both(ours: str | None, theirs: str | None) -> str:
    """Two values in words; of arrays the type, or that the shape differs."""
    if ours is None or theirs is None:
        return "in one only"
    a, b = (text.partition(" ")[2] for text in (ours, theirs))
    if ours.startswith("array ") and theirs.startswith("array "):
        shapes = list(dict.fromkeys(text.rpartition(" ")[0] for text in (a, b)))
        return " and ".join(shapes)
    return "other bytes" if ours.startswith("bytes ") else f"{a} and {b}"


def explained(a: Record, b: Record, names: list[str]) -> list[tuple[str, bool]]:
    """The first key in which each of some outputs differs, and whether it is trained; as far as their formats are read."""
    result = []
    for name in names:
        ours, theirs = a.keys_of(name), b.keys_of(name)
        if ours is not None and theirs is not None:
            result.append(_explained(name, ours, theirs))
    return result


def _explained(name: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, bool]:
    keys = _differing(ours, theirs)
    if not keys:
        return f"`{name}` holds {SAME_CONTENT}", False
    reasons = {key: _reason(incidental.named(key, name), ours.get(key), theirs.get(key), None) for key in keys}
    trained = [key for key, reason in reasons.items() if reason is None]
    others = [key for key, reason in reasons.items() if reason != incidental.A_TIME]
    if others:
        return _in_key(name, trained or others, ours, theirs), True
    return f"{_in_key(name, keys, ours, theirs)}, which is {incidental.A_TIME}", False


def have_results(a: Record, b: Record) -> bool:
    """True if a file differs in what was trained, or one that holds arrays or results is equal in both."""
    files = compare(a, b)
    return bool(files.differing) or any(
        incidental.holds_results(name, a.keys_of(name)) for name in [*files.equal, *files.but_for]
    )


def described(a: Record, b: Record, lenient: bool = False) -> str | None:
    """How many files are equal, and how many are not compared; None where there are none."""
    files = compare(a, b, lenient)
    number = len(a.outputs.keys() & b.outputs.keys()) + len(files.equal) + len(files.but_for)
    other = [name for name, reason in files.aside.items() if reason.startswith(NO_WEIGHT)]
    such = f", such as `{other[0]}`" if other else ""
    aside = f" ({len(files.aside)} not compared{such})" if files.aside else ""
    return f"outputs: {number}{aside}" if number or aside else None


# --- names that are other ones in each run ------------------------------------------------------------------------


def _matched(a: Record, b: Record) -> dict[str, str]:
    """For each file of the first run the name of that of the second."""
    both = {name: name for name in a.written if name in b.written}
    ours, theirs = (_by_pattern(one, both) for one in (a, b))
    alike = {pattern for pattern in ours.keys() & theirs.keys() if len(ours[pattern]) == len(theirs[pattern]) == 1}
    return both | {ours[pattern][0]: theirs[pattern][0] for pattern in alike}


def steady(name: str) -> bool:
    """True if a name has no part that is another one in each run."""
    return VARYING.sub("*", EVENTS.sub(r"\1", name)) == name


def _by_pattern(record: Record, known: Mapping[str, str]) -> dict[str, list[str]]:
    patterns: dict[str, list[str]] = {}
    for name in record.written:
        if name not in known:
            pattern = VARYING.sub("*", EVENTS.sub(r"\1", name))
            patterns.setdefault(pattern, []).append(name)
    return patterns
