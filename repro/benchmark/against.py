"""Compares two benchmarks: what became slower or faster beyond the noise, and what cannot be compared."""

from dataclasses import dataclass
from typing import Any

from repro.benchmark import intervals
from repro.benchmark.cells import REPEAT_BITS

Json = dict[str, Any]

SLOWER, FASTER, EQUAL, INCOMPARABLE = "slower", "faster", "no difference beyond the noise", "incomparable"
MACHINE = ("cpu", "gpu", "platform")
SETTINGS = ("model", "optimizer", "dataset")


@dataclass(frozen=True)
class Verdict:
    """What is to be said of a cell: the ratio new / old of its seconds per epoch, where they can be compared."""

    cell: str
    verdict: str
    ratio: Json | None
    why: str
    """Why it is incomparable; else whether the bits are those of before, where that can be told, and the code."""


def compare(old: Json, new: Json) -> list[Verdict]:
    """A verdict on every cell of either benchmark, the old one's cells first."""
    ours, theirs = ({row["cell"]: row for row in content["rows"]} for content in (old, new))
    times = [_times(content) for content in (old, new)]
    reason = _other_ground(old, new)
    found = []
    for cell in dict.fromkeys([*ours, *theirs]):
        why = reason or _obstacle(ours.get(cell), theirs.get(cell))
        if why:
            found.append(Verdict(cell, INCOMPARABLE, None, why))
            continue
        ratio = intervals.ratio_of_medians(times[1][cell], times[0][cell])
        verdict, said = _verdict(ratio), [_bits(ours[cell], theirs[cell])]
        if verdict != EQUAL and _same_code(old, new):
            said.append("the same commit: the machine or its settings changed")
        found.append(Verdict(cell, verdict, ratio, ", ".join(filter(None, said))))
    return found


def _times(content: Json) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for sample in content["samples"]:
        if sample["status"] == "done":
            found.setdefault(sample["cell"], []).append(sample["seconds_per_epoch"])
    return found


def _verdict(ratio: Json) -> str:
    if not intervals.excludes_one(ratio):
        return EQUAL
    return SLOWER if ratio["median"] > 1 else FASTER


def _other_ground(old: Json, new: Json) -> str | None:
    """In what two benchmarks differ as wholes, so that none of their times can be compared, or None."""
    for part, keys in (("machine", MACHINE), ("settings", SETTINGS)):
        for key in keys:
            if old[part].get(key) != new[part].get(key):
                return f"another {part}: {key} {_brief(old[part].get(key))} and {_brief(new[part].get(key))}"
    return None


def _same_code(old: Json, new: Json) -> bool:
    sources = [content["source"] for content in (old, new)]
    return sources[0]["commit"] == sources[1]["commit"] is not None and not any(one["dirty"] for one in sources)


def _obstacle(old: Json | None, new: Json | None) -> str | None:
    """Why two rows cannot be compared, or None."""
    if old is None or new is None:
        return "only in the old benchmark" if new is None else "only in the new benchmark"
    if old["seconds_per_epoch"] is None or new["seconds_per_epoch"] is None:
        return "it failed in one of them"
    fewest = min(old["seconds_per_epoch"]["n"], new["seconds_per_epoch"]["n"])
    if fewest < intervals.ENOUGH:
        return f"{fewest} samples are too few: raise minutes until there are {intervals.ENOUGH} or more"
    if old["version"] != new["version"]:
        return f"another version of the framework: {old['version']} and {new['version']}"
    return None


def _bits(old: Json, new: Json) -> str:
    """Whether rows that repeat their bits have those of before: a faster answer may be another one."""
    if old["numerics"] not in REPEAT_BITS or old["steps"] != new["steps"]:
        return ""
    return "the same bits" if old["fingerprints"] == new["fingerprints"] else "OTHER BITS than before"


def _brief(value: Any) -> str:
    text = str(value.get("model") if isinstance(value, dict) and value.get("model") else value)
    return text if len(text) <= 60 else f"{text[:59]}…"
