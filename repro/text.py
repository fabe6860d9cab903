"""Words and short forms of what people read."""

import re
from typing import Any

RUN = "{run}"
"""The folder of a run, in a command and in the names of its outputs."""
MOST_RANKS = 8  # ranks that are named
MOST_NAMES = 3  # names


def printable(value: Any) -> Any:
    """Replace each invisible character by a space: a file may hold what a terminal would obey."""
    if isinstance(value, dict):
        result: dict[Any, Any] = {}
        for key, inner in value.items():
            name = printable(key)
            while name in result:  # no two become one
                name = f"{name} {len(result)}"
            result[name] = printable(inner)
        return result
    if isinstance(value, list):
        return [printable(inner) for inner in value]
    if isinstance(value, str):
        return value if value.isprintable() else "".join(c if c.isprintable() else " " for c in value)
    return value


def printable_lines(text: str) -> str:
    """Replace invisible characters in a text of several lines, which stay."""
    return "\n".join(printable(line) for line in text.split("\n"))


def escaped(text: str) -> str:
    """Escape each invisible character, as `\\n`, `\\xa0` or `\\udcff`, so that different texts stay different.

    The last one stands for a byte of a file's name that is no UTF-8. A backslash is doubled.
    """
    return "".join(c if c.isprintable() and c != "\\" else repr(c)[1:-1] for c in text)


def listed(names: list[str]) -> str:
    """The first few names."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_NAMES]) + more


def ranks(numbers: list[int]) -> str:
    """Ranks in words: `rank 1`, `ranks 0, 1 and 6 more`."""
    more = f" and {len(numbers) - MOST_RANKS} more" if len(numbers) > MOST_RANKS else ""
    return f"rank{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:MOST_RANKS]))}{more}"


def short(fingerprint: str) -> str:
    """The first eight hex digits: enough for the eye, not for a proof."""
    return fingerprint[7:15] if fingerprint.startswith("sha256:") else fingerprint


def brief(value: Any) -> str:
    text = short(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 20 else f"{text[:19]}…"


def slug(label: str) -> str:
    """A label as a name of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower())


def counted(number: int, noun: str) -> str:
    """`1 answer`, `2 answers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
