"""Reports of what the processes of a command computed with portable numerics.

Each process writes a file, see repro/inject/portable.py. A container may write any, so they are read as a stranger's.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from repro.containers import command_line
from repro.containers.runtimes import ContainerRuntime
from repro.files import matching, read_json
from repro.frameworks import FRAMEWORKS
from repro.record.injection import REPORTS, Injection, Portable, unobserved
from repro.record.running import pass_through
from repro.structs import Flaw, Integer, Struct, converted
from repro.text import counted

LOADED, FAILED = "loaded", "failed"
IGNORED = "python -I, -E and -S ignore it, and a program may start others without PYTHONPATH"


class PortableReport(Struct):
    """The file of a process."""

    process: Integer
    version: str
    """The framework's version."""
    ended: bool
    """True if the process wrote it at its end."""
    framework: str = "pytorch"
    operations: dict[str, Integer] = {}
    """The number of computed operations, by kind."""
    allowed: dict[str, Integer] = {}
    """The number of operations that ran natively, by kind."""


@dataclass
class Computed:
    """The portable operations of all processes of a command."""

    reports: Sequence[PortableReport]
    marks: set[str] = field(default_factory=set)
    """The names of the empty files beside the reports."""

    @property
    def on(self) -> bool:
        """True if portable numerics were enabled in a process."""
        return bool(self.reports)

    @property
    def nothing(self) -> str:
        """The reason that no process had portable numerics."""
        if FAILED in self.marks:
            return "they could not be enabled; the process that imported the framework said why, and ended"
        if LOADED not in self.marks:
            return f"no Python process of the command loaded them ({IGNORED})"
        return "no process imported PyTorch, TensorFlow or JAX"

    def __str__(self) -> str:
        """Describes all of it in one line."""
        if not self.on:
            return f"NOTHING WAS PORTABLE: {self.nothing}"
        parts = [
            self._of_framework(name) for name in FRAMEWORKS if any(each.framework == name for each in self.reports)
        ]
        allowed = self._counted("allowed", self.reports)
        parts += [f"run natively: {', '.join(sorted(allowed))}"] if allowed else []
        killed = len({report.process for report in self.reports if not report.ended})
        parts += [f"not counted: those of {_killed(killed)}"] if killed else []
        return "; ".join(parts)

    def _of_framework(self, name: str) -> str:
        reports = [report for report in self.reports if report.framework == name]
        operations = self._counted("operations", reports)
        versions = ", ".join(dict.fromkeys(report.version for report in reports))
        computing = [report for report in reports if report.operations or report.allowed]
        processes = f", {len(computing)} processes" if len(computing) > 1 else ""
        title = FRAMEWORKS[name].title
        return f"{_number(operations.total())} of {counted(len(operations), 'kind')} ({title} {versions}{processes})"

    @staticmethod
    def _counted(kind: str, reports: Sequence[PortableReport]) -> Counter[str]:
        total: Counter[str] = Counter()
        for report in reports:
            total.update(getattr(report, kind))
        return total


def _number(count: int) -> str:
    return f"{count:,} operation" if count == 1 else f"{count:,} operations"


def _killed(count: int) -> str:
    return "a process that was killed" if count == 1 else f"{count} processes that were killed"


def computed(folder: Path) -> Computed:
    """Reads a folder of reports."""
    reports = []
    for path in matching(folder, "*.json"):
        try:
            reports.append(converted(read_json(path), PortableReport))
        except (OSError, ValueError, Flaw):  # cut off in the middle of a line
            reports.append(PortableReport(process=0, version="?", ended=False))
    return Computed(reports, {path.name for path in folder.iterdir() if path.suffix == ""})


def run(command: Sequence[str], options: Portable) -> tuple[int, Computed]:
    """Runs a command, on the host or in the container that it starts; its exit code, and what was computed."""
    injection, container = Injection(observed=False, portable=options), command_line.find(command)
    with tempfile.TemporaryDirectory(prefix="repro-portable-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / REPORTS).mkdir()
        if container is None:
            code = pass_through(command, injection.environment(os.environ, folder))
        else:
            runtime = ContainerRuntime(container, unobserved(os.environ))
            runtime.prepare([folder / REPORTS], None)
            code = pass_through(runtime.words([injection.addition(folder)]), runtime.environment)
        return code, computed(folder / REPORTS)
