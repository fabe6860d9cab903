"""Outcomes of the settings side by side: bits, errors, and what is taken.

    python compare.py FRAMEWORK FOLDER [--all] [--only PART] [--jobs N]

Runs run.py in each setting, unless FOLDER has its output already, and prints a row for each operation. What is wrong is
printed to stderr; fails where anything is.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from programs.fuzz.cases import HALVES, Kept, Outcome, read
from programs.fuzz.limit import Limit
from programs.fuzz.limits import limit_of
from programs.fuzz.settings import BASE, DOUBLE, NATIVE, SETTINGS, VARIED

RUN = Path(__file__).with_name("run.py")
ROOT = Path(__file__).parents[3]
Outcomes = dict[tuple[str, str], Outcome]
UNITS, SHARE = 2, 2.0**-12
"""Errors up to these, in units in the last place and of the largest number, need no reason."""


@dataclass
class Row:
    """What the calls of one operation gave."""

    calls: int = 0
    compared: int = 0
    """Calls with results in each setting."""
    refused: int = 0
    ulps: float = 0
    """The largest distance from float64 of functions of numbers, in units in the last place of the result's type."""
    share: float = 0
    """That of sums and products beyond these units, relative to the largest number of the same result."""
    reasons: set[str] = field(default_factory=set)
    """Why errors are above UNITS or SHARE."""
    faults: list[str] = field(default_factory=list)


def table(framework: str, results: dict[str, Outcomes]) -> dict[str, Row]:
    """A row for each operation. `results` are outcomes by the names of settings."""
    rows: dict[str, Row] = {}
    for key, base in results[BASE.name].items():
        row = rows.setdefault(base.operation, Row())
        row.calls += 1
        row.refused += base.status == "refused"
        row.compared += base.status == "computed"
        row.faults += [f"{base.sample}: {fault}" for fault in _faults(framework, key, base, results, row)]
    for setting, outcomes in results.items():
        if len(outcomes) != len(results[BASE.name]):
            name = next(iter({*outcomes} ^ {*results[BASE.name]}))[0]
            rows.setdefault(name, Row()).faults.append(f"{setting}: {len(outcomes)} calls; the process ended early?")
    return dict(sorted(rows.items()))


def _faults(
    framework: str, key: tuple[str, str], base: Outcome, results: dict[str, Outcomes], row: Row
) -> Iterator[str]:
    limit = limit_of(framework, base.operation, base.sample)
    for setting in VARIED:
        other = results[setting.name].get(key)
        if other is None or limit.memory or (limit.narrow and other.status == "refused"):
            continue
        if (other.status, _digests(other)) != (base.status, _digests(base)):
            yield f"{setting.name}: {base.status} {base.text} -> {other.status} {other.text}, other bits"
    native, exact = results[NATIVE.name].get(key), results[DOUBLE.name].get(key)
    if native is None or native.status != "computed":
        return
    if base.status == "failed":
        yield f"the framework computes it: {base.text}"
    if base.status != "computed":
        return
    kinds, own_kinds = (
        [("" if limit.wider else each.dtype, each.shape) for each in outcome.arrays] for outcome in (base, native)
    )
    if kinds != own_kinds:
        yield f"other types or shapes: {kinds}, the framework's own {own_kinds}"
        return
    reference = exact if exact is not None and exact.status == "computed" and not limit.native else native
    if not limit.compared or len(reference.arrays) != len(base.arrays):
        return
    for x, y, own in zip(base.arrays, reference.arrays, native.arrays, strict=True):
        if y.dtype in HALVES:  # the framework has no float64 of it
            continue
        ulps, share, wrong = distance(x, y, own, limit)
        if limit.share:
            row.share = max(row.share, share)
        else:
            row.ulps = max(row.ulps, ulps)
        if share > SHARE if limit.share else ulps > UNITS:
            row.reasons.add(limit.reason)
        if wrong:
            yield wrong


def _digests(outcome: Outcome) -> list[str]:
    return [each.digest for each in outcome.arrays]


def distance(x: Kept, exact: Kept, native: Kept, limit: Limit) -> tuple[float, float, str]:
    """The largest errors of a result where it is finite: in units in the last place, and beyond the limit's units as a share
    of its largest number; and what is wrong with it, or "". What is below the limit's `least`, within its `own`, or the
    framework's own number, is no error.

    Where float64 has no number of the result's type (an overflow, NaN), both this and the framework's own result are right.
    """
    result, right, own = x.array, exact.array, native.array
    if result is None or right is None or own is None or not result.size or right.shape != result.shape:
        return 0, 0, ""
    if result.dtype.kind not in "fc":
        return 0, 0, ""
    if result.dtype.kind == "c":
        result, right, own = (
            np.stack([each.real, each.imag]) for each in (result, right.astype(complex), own.astype(complex))
        )
    if not limit.signed:
        result, right, own = (np.abs(each) for each in (result, right, own))
    if not limit.ordered:
        result, right, own = (np.sort(each, axis=None) for each in (result, right, own))
    with np.errstate(all="ignore"):
        pole = ~np.isfinite(right) & ((result == right) | np.isnan(result) & np.isnan(right))
        right = np.where(np.isfinite(right) | ~np.isfinite(own) | pole, right, own).astype(float)
        bits, least = {"bfloat16": (8, -126), "float16": (11, -14), "float64": (53, -1022)}.get(x.dtype, (24, -126))
        unit = np.ldexp(1.0, np.clip(np.frexp(right)[1] - 1, least, None) - (bits - 1))
        units = limit.ulps * np.maximum(1, np.square(right)) if limit.squares else limit.ulps
        error, others = (np.abs(each.astype(float) - right) for each in (result, own))
        finite = np.isfinite(right) & np.isfinite(result)
        largest = np.max(np.abs(right), where=np.isfinite(right), initial=0)
        others = np.where(np.isfinite(others), others, 0)
        normal = np.isfinite(right) & (np.abs(right) >= 2.0**least)
        units = units + limit.worst * np.max(others / unit, where=normal, initial=0)
        allowed = units * unit + limit.share * largest + limit.least + limit.own * others
        excess = np.maximum(error - limit.least - limit.own * others, 0)
        nearest = right.astype({"float64": float, "float16": np.float16}.get(x.dtype, np.float32))
        same = (
            (result == nearest)
            | (np.isnan(result) & np.isnan(right))
            | (result == own)
            | (np.isnan(result) & np.isnan(own))
            | (np.isnan(result) & limit.spreads)
            | (~np.isfinite(own) & limit.spreads)
            # a product of float64 is 2^46 times its result on the way
            | (np.isinf(result) & limit.spreads & (np.abs(right) > 2.0**977))
            | (~np.isfinite(own) & limit.overflows)
            | (np.isinf(result) & limit.poles)
            | (np.isnan(right) & (limit.overflows | (limit.spreads & np.isinf(result))))
        )
        wrong = ~(same | (finite & (error <= allowed)))
        counted = finite & ~same
        ulps = np.where(counted, excess / unit, 0)
        shares = np.where(counted, np.maximum(excess - limit.ulps * unit, 0) / (largest or 1), 0)
    text = ""
    if wrong.any():
        at = np.flatnonzero(wrong)[0]
        text = f"{np.ravel(result)[at]}, float64 {np.ravel(right)[at]}, native {np.ravel(own)[at]}; {ulps.max():.3g} ulp, {shares.max():.3g} of the largest"
    return float(ulps.max()), float(shares.max()), text


def outcomes(framework: str, folder: Path, more: list[str], jobs: int) -> dict[str, Outcomes]:
    """Runs each setting whose output is not in the folder yet, and reads all."""
    folder.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> Outcomes:
        path = folder / f"{framework} {name}.jsonl"
        if not path.exists():
            environment = os.environ | SETTINGS[name].environment()
            # one more process may end in a crash: what it has written counts, see table()
            subprocess.run(
                [sys.executable, "-s", "-P", RUN, framework, name, path, *more], env=environment, check=False
            )
        return read(path)

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(SETTINGS, pool.map(run, SETTINGS), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=("pytorch", "tensorflow", "jax"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    more = (["--all"] if given.all else []) + [f"--only={given.only}"]
    rows = table(given.framework, outcomes(given.framework, given.folder, more, given.jobs))
    for name, row in rows.items():
        print(f"{name:<50} {row.calls:4} {row.compared:4} {row.refused:4} {row.ulps:10.3g} {row.share:10.3g}")
    for name, row in rows.items():
        for fault in row.faults:
            print(f"{name}: {fault}", file=sys.stderr)
    sums = [sum(getattr(row, name) for row in rows.values()) for name in ("calls", "compared", "refused")]
    faults = sum(len(row.faults) for row in rows.values())
    print(f"{len(rows)} operations, {sums[0]} calls: {sums[1]} computed, {sums[2]} refused; {faults} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
