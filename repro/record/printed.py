"""Metrics in what a program prints: `loss 0.123`, `epoch 3: val_acc=0.91`, a dict or an object of JSON on a line.

Only scores are taken: a loss, an accuracy. Of a progress bar only its last state is, as which others are drawn depends on
the time. Tables with drawn borders are left out: their width depends on the terminal.
"""

import ast
import re
from collections.abc import Callable
from typing import Any

from repro.files import parsed
from repro.record.metric_names import is_place, may_be_score, words
from repro.record.metric_values import AFTER, Metric, of_row

LONGEST = 4000  # characters of a line that is looked at
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of a terminal
STATES = re.compile(r"[\r\x08]+")  # between two states of a bar
DIGIT = re.compile(r"\d|nan|inf", re.IGNORECASE)
BORDERS = re.compile(r"[│┃║]")
BAR = re.compile(r"(?:it|s)/(?:s|it)\b|[━█#╸]{3}|\bm?s/step|\d%\|")
FRACTION = re.compile(r"(?<![\w.])(\d+)/(\d+)(?![\w./])")
NAME = r"[A-Za-z_][\w@./\-]{0,60}+(?:\([\w@%]{1,8}\))?"  # possessive: a long word is tried once
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b"
UNIT = r"\s?(?:ms|s|secs?|seconds?|min|minutes?|h|hours?|[GMK]i?B|it/s|s/it|[a-z]+/s(?:ec)?)\b(?!\s*[:=])"
PAIR = re.compile(
    rf"""(?<![\w@./\-])(?P<name>{NAME}(?:\ {NAME}){{0,3}})["']?
    (?P<between>\s*[:=|]\s*|\s+(?:is|of|->)\s+|\s+)
    (?:[A-Za-z_.\d]+\()?[\[(]?
    (?P<value>{NUMBER})
    (?:/(?P<whole>\d+))?%?
    (?![\w…]|\.\d|[:/-]\d|{UNIT})""",
    re.VERBOSE | re.IGNORECASE,
)


def metrics(source: str, text: bytes) -> list[Metric]:
    """The scores in a text, each at the epoch or step that its line names, or else after the last one that was named."""
    result: list[Metric] = []
    last = ""
    for line in text.decode(errors="replace").split("\n"):
        state = _last_state(line)
        if state is None:
            continue
        row = _row(state)
        if row is not None:
            result += of_row(source, row)
            continue
        places, scores = _pairs(state)
        at = ", ".join(f"{name} {value}" for name, value in places.items())
        last = at or last
        place = at or (f"{AFTER}{last}" if last else "")
        result += [Metric(source=source, name=name, at=place, value=value) for name, value in scores]
    return result


def _last_state(line: str) -> str | None:
    """A line without what a terminal obeys; of a progress bar its last state. None where it has none to rely on."""
    states = [state for state in STATES.split(ESCAPE.sub("", line[-LONGEST:])) if state.strip()]
    if not states or not DIGIT.search(states[-1]) or BORDERS.search(states[-1]):
        return None
    state = states[-1]
    if not BAR.search(state):
        return state
    fraction = FRACTION.search(state)
    whole = fraction is not None and fraction[1] == fraction[2]
    cut_off = "%|" in state and not state.rstrip().endswith("]")  # to the width of the terminal
    return FRACTION.sub(" ", state) if whole and not cut_off else None


def _row(line: str) -> dict[str, Any] | None:
    """The dict that a line is, as JSON or as Python shows it."""
    text = line.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    readers: tuple[Callable[[str], Any], ...] = (lambda line: parsed(line.encode()), ast.literal_eval)
    for read in readers:
        try:
            row = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(row, dict):
            return {str(name): value for name, value in row.items()}
    return None


def _pairs(line: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The places that a line names, and its scores."""
    places: dict[str, str] = {}
    scores = []
    for match in PAIR.finditer(line):
        name, value = match["name"], match["value"]
        if is_place(name):
            places[words(name)[-1]] = value
        elif may_be_score(name) and not _is_code(name, value):
            scores.append((name, f"{value}/{match['whole']}" if match["whole"] else value))
    return places, scores


def _is_code(name: str, value: str) -> bool:
    """True for the number of an error, as in `error 303`, which is no score."""
    return words(name)[-1] in ("error", "errors") and value.lstrip("+-").isdecimal()
