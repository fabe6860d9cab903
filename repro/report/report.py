"""The report's files: a page, Markdown and JSON.

They show what `verify`, `audit` and `benchmark` found, here and elsewhere.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from repro import structs
from repro.errors import UsageError
from repro.files import write_atomically, write_json
from repro.report import badge as badges
from repro.report import findings, page, speed_tables, tables
from repro.report.contents import Report
from repro.trainers.benchmark.results import KIND as BENCHMARK
from repro.trainers.benchmark.results import Benchmark
from repro.verify import audits, results
from repro.verify.audits import Audit
from repro.verify.results import Results

PATTERNS = ("verify/*/results.json", "verify-*/results.json", "benchmark/*/benchmark.json")
AUDITS = ("verify/*/audit.json", "verify-*/audit.json")


def write(workspace: Path, files: Sequence[str | Path], to: Path | None = None, badge: Path | None = None) -> Report:
    """Writes report.{html,md,json} from the files, or from all that the two tasks left in the workspace, and the badge.

    They go to the folder `to`, or else to WORKSPACE/report. Returns the content of report.json. UsageError where there is
    nothing to report, ReproError for a file that cannot be believed.
    """
    paths = [Path(file) for file in files] or _below(workspace, PATTERNS)
    if not paths:
        raise UsageError(
            f"report: there is none of {', '.join(PATTERNS)} in {workspace}; run `verify` or `benchmark` first, or name the files"
        )
    paths += [] if files else _below(workspace, AUDITS)
    contents: list[Results | Benchmark | Audit] = [
        structs.read(path, results.KIND, BENCHMARK, audits.KIND) for path in paths
    ]
    own = [content for content in contents if isinstance(content, Results)]
    report = findings.build(own, [content for content in contents if isinstance(content, Audit)])
    if badge and not own:
        raise UsageError(f"report: --badge {badge}: no results of verify are among the files; name a results.json")
    measured = {content.seal: content for content in contents if isinstance(content, Benchmark)}
    report.benchmarks = sorted(measured.values(), key=lambda content: content.created, reverse=True)
    folder = to or workspace / "report"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "report.json", msgspec.to_builtins(report))
    parts = [tables.markdown(report)] if report.sections else []
    text = "\n".join([*parts, *map(speed_tables.markdown, report.benchmarks)])
    write_atomically(folder / "report.md", text.encode())
    write_atomically(folder / "report.html", page.html(report).encode())
    if badge:
        write_atomically(badge, badges.svg(report.levels).encode())
    return report


def _below(folder: Path, patterns: Sequence[str]) -> list[Path]:
    return sorted(path for pattern in patterns for path in folder.glob(pattern))
