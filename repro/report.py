"""The task `report`: results of `verify`, from this machine and others, as a page, as Markdown and as JSON."""

import json
from pathlib import Path

from repro import findings, page, results, tables
from repro.errors import UsageError
from repro.files import write_atomically
from repro.findings import Json


def write(workspace: Path, files: list[str]) -> Json:
    """Writes WORKSPACE/report/report.{html,md,json} from the files, or from all that `verify` left in the workspace.

    Returns what report.json holds. UsageError where there is nothing to report, ReproError for a file that cannot be
    believed.
    """
    paths = [Path(file) for file in files] or sorted(workspace.glob("verify/*/results.json"))
    if not paths:
        raise UsageError(
            f"report: there is no verify/*/results.json in {workspace}; run `./run.sh verify` first, or name the files"
        )
    report = findings.build([results.read(path) for path in paths])
    folder = workspace / "report"
    folder.mkdir(exist_ok=True)
    write_atomically(folder / "report.json", json.dumps(report, indent=2).encode() + b"\n")
    write_atomically(folder / "report.md", tables.markdown(report).encode())
    write_atomically(folder / "report.html", page.html(report).encode())
    return report
