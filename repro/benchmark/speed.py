"""benchmark.json: the samples that `benchmark` took on one machine, and what follows from them: rows and ratios."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro import sealed
from repro.benchmark import intervals, roofline
from repro.benchmark.cells import REPEAT_BITS
from repro.sealed import INTEGER, NONE, NUMBER, SHA256, TEXT, UTC, Kind

Json = dict[str, Any]

PAIR = (NONE, [(int, float)])
SUMMARY = {"n": int, "median": float, "quartiles": [float], "interval": PAIR}
CELL = {
    "framework": str, "numerics": str, "device": str, "batch_size": int, "threads": int, "train_samples": int,
    "steps": int,
}  # fmt: skip
SAMPLE = {"cell": str, "round": int, "status": {"done", "failed", "refused"}, "seconds": float}
ROW = CELL | {
    "cell": str, "version": TEXT, "error": TEXT, "seconds_per_epoch": (NONE, SUMMARY), "images_per_second": NUMBER,
    "resolution": NUMBER, "first_epoch": NUMBER, "first_step": NUMBER, "cold_start": NUMBER,
    "startup": (NONE, {"begin": float, "import": float, "build": float, "compile": float}),
    "floor": NUMBER, "peak_memory": INTEGER, "gpu_memory": INTEGER, "joules_per_epoch": NUMBER,
    "fingerprints": [SHA256], "agree": (NONE, bool), "to_target": (NONE, {"seconds": NUMBER, "measured": bool}),
}  # fmt: skip
RATIO = {
    "kind": {"determinism", "portability", "tutorial", "tuned"}, "framework": str, "device": str, "batch_size": int,
    "threads": int, "train_samples": int, "n": int, "median": float, "interval": PAIR,
}  # fmt: skip
BENCHMARK = {
    "created": UTC, "seconds": (int, float), "interrupted": bool, "others_busy": (int, float), "energy": {...: str},
    "machine": {"cpu": dict, "gpu": [dict], "platform": str, "name": TEXT}, "source": dict,
    "settings": {"model": str, "optimizer": str, "dataset": str, "target": NUMBER, "epochs": float, "overrides": [str]},
    "floor": [{"threads": int, "dtype": {"float32", "float64"}, "rates": [(int, float)]}],
    "imports": {...: [float]}, "targets": {...: dict}, "cells": {...: CELL}, "samples": [SAMPLE], "skipped": [str],
    "rows": [ROW], "ratios": [RATIO], "warnings": [str], "disagreements": [str],
    "caches": {...: str},
}  # fmt: skip

# What a ratio is of: the numerics above and below the line.
RATIOS = {
    "determinism": ("deterministic", "fast"),
    "portability": ("portable", "deterministic"),
    "tutorial": ("tutorial", "deterministic"),
    "tuned": ("tuned", "deterministic"),
}
TITLES = {
    "determinism": "Price of determinism: deterministic / fast",
    "portability": "Price of portability: portable / deterministic",
    "tutorial": "Tutorial's loop / deterministic",
    "tuned": "Loop tuned by hand / deterministic",
}


def write(path: Path, content: Json) -> None:
    """Adds schema and seal, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    sealed.write(KIND, path, content)


def read(path: Path) -> Json:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    return sealed.read(path, KIND)


# --- from samples to rows -------------------------------------------------------------------------------------------


def concluded(content: Json) -> Json:
    """The content with what follows from its samples: `rows`, `ratios`, `caches`, `warnings`, `disagreements`."""
    by_cell = {name: [one for one in content["samples"] if one["cell"] == name] for name in content["cells"]}
    rows = [_row(name, taken, content) for name, taken in by_cell.items() if taken]
    return content | {
        "rows": rows,
        "ratios": list(_ratios(content["cells"], by_cell)),
        "caches": dict(sorted(item for one in content["samples"] for item in one.get("compile_cache", {}).items())),
        "warnings": list(_warnings(content, rows)),
        "disagreements": list(_disagreements(rows)),
    }


def _row(name: str, taken: list[Json], content: Json) -> Json:
    """What the samples of a cell say together: medians, but of memory the most."""
    cell = content["cells"][name]
    done = [one for one in taken if one["status"] == "done"]
    failed = [one["error"] for one in taken if one["status"] != "done"]
    seconds = intervals.summary([one["seconds_per_epoch"] for one in done]) if done else None
    startup = {part: _median(one["startup"][part] for one in done) for part in done[0]["startup"]} if (
        done and done[0]["startup"]) else None  # fmt: skip
    fingerprints = list(dict.fromkeys(one["fingerprint"] for one in done))
    row = {"cell": name} | cell | {
        "version": done[0]["version"] if done else None,
        "error": failed[0] if failed else None,
        "seconds_per_epoch": seconds,
        "images_per_second": cell["train_samples"] / seconds["median"] if seconds else None,
        "resolution": intervals.resolution(seconds) if seconds else None,
        "startup": startup,
        "fingerprints": fingerprints,
        "agree": len(fingerprints) == 1 if len(done) > 1 and cell["numerics"] in REPEAT_BITS else None,
    }  # fmt: skip
    row |= {key: _median(one[key] for one in done) for key in ("first_epoch", "first_step", "joules_per_epoch")}
    row |= {key: max((one[key] or 0 for one in done), default=0) or None for key in ("peak_memory", "gpu_memory")}
    own = _median(content["imports"].get(cell["framework"], []))
    row["cold_start"] = row["first_step"] / (own + startup["compile"]) if own and startup else None  # type: ignore[operator]
    row["floor"] = _floor(cell, content)
    row["to_target"] = _to_target(row, content)
    return row


def _median(values) -> float | None:
    """The median; None where there is none, or one sample has none."""
    known = list(values)
    return float(statistics.median(known)) if known and None not in known else None


def _floor(cell: Json, content: Json) -> float | None:
    """Seconds that an epoch's products take at the machine's best rate, on the CPU; portable ones are of float64."""
    dtype = "float64" if cell["numerics"] == "portable" else "float32"
    rates = [
        rate
        for one in content["floor"] if (one["threads"], one["dtype"]) == (cell["threads"], dtype)
        for rate in one["rates"]
    ]  # fmt: skip
    if cell["device"] != "cpu" or not rates:
        return None
    return roofline.flops_per_image(content["settings"]["model"]) * cell["train_samples"] / max(rates)


def _to_target(row: Json, content: Json) -> Json | None:
    """Seconds from the command to the target, measured for one arithmetic of each framework.

    Estimated for others on the same batches, which learn alike: what it takes to start, and the epochs that the
    measured run needed, at this row's speed. `seconds` is None where the run did not get there.
    """
    run = content["targets"].get(row["framework"])
    same = run and run["status"] == "done" and row["startup"]
    if not same or any(run[key] != row[key] for key in ("batch_size", "device", "threads", "train_samples")):
        return None
    reached = [epoch for epoch in run["epochs"] if epoch["test_accuracy"] >= content["settings"]["target"]]
    measured = run["numerics"] == row["numerics"]
    if not reached:
        return {"seconds": None, "measured": measured}
    if measured:
        return {"seconds": reached[0]["end"], "measured": True}
    an_epoch = row["seconds_per_epoch"]["median"] + run["evaluation"]
    return {"seconds": row["first_step"] + reached[0]["epoch"] * an_epoch, "measured": False}


def _ratios(cells: Json, by_cell: dict[str, list[Json]]) -> Iterator[Json]:
    """Of samples of two cells taken in the same rounds, for each pair of cells that differ in their numerics alone."""
    times = {
        name: {one["round"]: one["seconds_per_epoch"] for one in taken if one["status"] == "done"}
        for name, taken in by_cell.items()
    }
    for kind, (above, below) in RATIOS.items():
        for name, cell in cells.items():
            if cell["numerics"] != below:
                continue
            other = name.replace(f"/{below}/", f"/{above}/")
            found = intervals.ratios(times.get(other, {}), times[name])
            if found:
                what = {key: value for key, value in cell.items() if key not in ("numerics", "steps")}
                yield {"kind": kind} | what | intervals.summary(found)


def _warnings(content: Json, rows: list[Json]) -> Iterator[str]:
    """Why the figures may be worth less than they look."""
    usable = content["machine"]["cpu"].get("usable") or 1
    if content["others_busy"] > 0.1 * usable:
        yield (
            f"the machine is busy: other processes took {content['others_busy']:.1f} of {usable} cores before the "
            "first sample"
        )
    told = [row for row in rows if row["resolution"] is not None]
    if not told:
        yield "one sample of each: nothing is known of the noise; raise minutes or rounds"
    noisy = [row for row in told if row["resolution"] > intervals.NOISY]
    if noisy:
        worst = max(noisy, key=lambda row: row["resolution"])
        best = min(told, key=lambda row: row["resolution"])
        yield (
            f"the machine is noisy: in {len(noisy)} of {len(told)} rows no difference below "
            f"{intervals.NOISY:.0%} could have been told; the smallest one that could: {best['resolution']:.1%} in "
            f"{best['cell']}, {worst['resolution']:.1%} in {worst['cell']}"
        )
    if content["interrupted"]:
        yield "interrupted: the rows hold what was measured until then"
    for row in rows:
        if row["error"]:
            yield f"{row['cell']}: {row['error']}"


def _disagreements(rows: list[Json]) -> Iterator[str]:
    """Fingerprints that should be one and are not: of a cell's samples, and of portable rows that train alike."""
    for row in rows:
        if row["agree"] is False:
            yield f"{row['cell']}: {len(row['fingerprints'])} fingerprints, where {row['numerics']} promises one"
    alike: dict[tuple, list[Json]] = {}
    for row in rows:
        if row["numerics"] == "portable":
            alike.setdefault((row["batch_size"], row["train_samples"], row["steps"]), []).append(row)
    for together in alike.values():
        if len({mark for row in together for mark in row["fingerprints"]}) > 1:
            yield f"portable promises one fingerprint to all of {', '.join(row['cell'] for row in together)}"


def _contradictions(content: Json) -> Iterator[str]:
    """A sample or a row of no known cell, and medians that are not those of the samples."""
    for one in [*content["samples"], *content["rows"]]:
        if one["cell"] not in content["cells"]:
            yield f"{one['cell']} is no cell"
    if not all(one["rates"] for one in content["floor"]):
        yield "a floor has no rates"
    for row in content["rows"]:
        taken = [one for one in content["samples"] if one["cell"] == row["cell"] and one["status"] == "done"]
        times = [one.get("seconds_per_epoch") for one in taken]
        if not all(isinstance(seconds, float) and seconds > 0 for seconds in times):
            yield f"a sample of {row['cell']} has no seconds_per_epoch"
        elif bool(times) != bool(row["seconds_per_epoch"]) or (
            times and statistics.median(times) != row["seconds_per_epoch"]["median"]
        ):
            yield f"the row of {row['cell']} does not follow from its samples"


KIND = Kind("benchmark", "benchmark.json", 1, "ratios", BENCHMARK, _contradictions)
