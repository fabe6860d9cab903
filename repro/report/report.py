"""The task `report`: what `verify` and `benchmark` found, here and elsewhere, as a page, as Markdown and as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

from repro import sealed
from repro.benchmark import speed
from repro.errors import UsageError
from repro.files import write_atomically
from repro.report import findings, page, speed_tables, tables
from repro.report.findings import Json
from repro.text import printable
from repro.verify import results

PATTERNS = ("verify/*/results.json", "verify-*/results.json", "benchmark/*/benchmark.json")


def write(workspace: Path, files: Sequence[str | Path], to: Path | None = None) -> Json:
    """Writes report.{html,md,json} from the files, or from all that the two tasks left in the workspace.

    They go to the folder `to`, or else to WORKSPACE/report. Returns what report.json holds. UsageError where there is
    nothing to report, ReproError for a file that cannot be believed.
    """
    named = [Path(file) for file in files]
    paths = named or sorted(path for pattern in PATTERNS for path in workspace.glob(pattern))
    if not paths:
        raise UsageError(
            f"report: there is none of {', '.join(PATTERNS)} in {workspace}; run `verify` or `benchmark` first, or "
            "name the files"
        )
    contents = {content["seal"]: content for content in (sealed.read(path, results.KIND, speed.KIND) for path in paths)}
    measured = [content for content in contents.values() if speed.KIND.mark in content]
    report = findings.build([content for content in contents.values() if content not in measured])
    report["benchmarks"] = sorted(map(printable, measured), key=lambda one: one["created"], reverse=True)
    folder = to or workspace / "report"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "report.json", json.dumps(report, indent=2).encode() + b"\n")
    parts = [tables.markdown(report)] if report["sections"] else []
    text = "\n".join([*parts, *map(speed_tables.markdown, report["benchmarks"])])
    write_atomically(folder / "report.md", text.encode())
    write_atomically(folder / "report.html", page.html(report).encode())
    return report
