"""Recording of one run of a command.

The command is started with the observer before its own Python path; in the end record.json is written.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from repro.containers import command_line
from repro.containers.runtimes import ContainerRuntime
from repro.errors import UsageError
from repro.files import current_folder, write_json
from repro.machine.variables import deciding
from repro.record import lines, metric_files, metrics, outputs, portable, provenance, record, signature, written
from repro.record.checkpoints import CheckpointChange, gathered
from repro.record.injection import REPORTS, Injection, Portable, unobserved
from repro.record.lines import LOADED, STEPS, Process
from repro.record.metric_values import Metric
from repro.record.portable import Computed
from repro.record.record import FILE, SCHEMA, Content, Record, TrainedProcess
from repro.record.running import Ended, Watch, in_background, pass_through
from repro.text import RUN, escaped


@dataclass
class Recording:
    """A run of a command, while it is recorded."""

    command: Sequence[str]
    folder: Path
    """The record's; made here, so it must be empty or not there."""
    patterns: Sequence[str] = ()
    """The glob patterns of the outputs."""
    every: int = 1
    keep: bool = False
    run: Path | None = None
    """The folder that `{run}` stands for."""
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The command's own environment."""
    changes: command_line.Addition = field(default_factory=command_line.Addition)
    """Changes by a question: a container gets them on its command line, a process in its environment."""
    observed: bool = True
    narrow: int | None = None
    """The step of which each operation is written down."""
    portable: Portable | None = None
    """The options of portable numerics, if it is run with them."""
    hold: int | None = None
    """The number of steps after which it waits before each backward pass."""
    all_files: bool = False
    """True if all files in the run's folder are hashed, where no output is named."""
    checkpoints: Sequence[str] = ()
    """The glob patterns of the checkpoints that are copied."""
    modules: Sequence[int] = ()
    """The steps of which each call of a module is written down, with its arrays."""

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()  # the command may remove a folder on the way, as that of `x/..`
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise UsageError(f"record: {self.folder} already exists and is not empty; name another folder with --to")
        self.place = current_folder()
        container = command_line.find(self.command)
        self.runtime = ContainerRuntime(container, unobserved(self.variables)) if container else None
        copied = tuple(self._inside(outputs.in_run(pattern, self.run)) for pattern in self.checkpoints)
        self.keep = self.keep or bool(self.modules)
        self.injection = Injection(
            self.observed, self.every, self.keep, self.narrow, self.portable, self.hold, copied, tuple(self.modules)
        )
        for name in {STEPS, *self.injection.folders}:
            (self.folder / name).mkdir(parents=True)
        if self.runtime:
            self.runtime.prepare(self._shared, self.run)
        self.before = outputs.states(outputs.matched(self.patterns, self.run))
        self.metrics_before = outputs.states(self._metric_files())
        inside = self.runtime.scripts() if self.runtime else []
        self.facts = provenance.beforehand([*self.command, *inside], self.place)
        self.texts: dict[str, bytes] = {}
        """What it printed, by the name of the file; nothing where it ran in the foreground."""
        self.started = datetime.now(UTC)
        self.clock = time.perf_counter()

    @property
    def _shared(self) -> list[Path]:
        """The folders that are written into from inside a container."""
        return [*(self.folder / name for name in self.injection.folders), *([self.run] if self.run else [])]

    @property
    def words(self) -> list[str]:
        """The command to start; a container's has the additions."""
        if self.runtime is None:
            return list(self.command)
        return self.runtime.words([self.injection.addition(self.folder), self.changes])

    @property
    def environment(self) -> dict[str, str]:
        """The environment to start the command in."""
        variables = unobserved(self.variables)
        return variables if self.runtime else self.injection.environment(variables, self.folder)

    @property
    def _facts(self) -> dict[str, Any]:
        """The given facts; for a container, those of the container instead of the host's."""
        if self.runtime is None:
            return self.facts
        inside = {**self.runtime.variables, **self.changes.variables}
        return self.facts | {"container": self.runtime.facts, "environment": deciding(inside)}

    @property
    def _numerics(self) -> dict[str, Any]:
        """The options of portable numerics as a fact, if they were on."""
        if self.computed and not self.computed.on:
            return {"portable_numerics": None}
        options = self.portable or (None if self.runtime else Portable.around(self.variables))
        return {"portable_numerics": options.as_fact() if options else None}

    @property
    def computed(self) -> Computed | None:
        """The portable operations; None if they were not requested."""
        return portable.computed(self.folder / REPORTS) if self.portable else None

    def carry_out(
        self,
        is_over: Watch | None = None,
        number: signal.Signals = signal.SIGTERM,
        cores: int | None = None,
    ) -> Ended:
        """Runs the command in the background, until it ends or is over; what it prints lies beside the record."""
        place = self.folder.parent
        before = {name: len(_printed(place / name)) for name in metrics.PRINTED}
        ended = in_background(self.words, place, is_over, number, self.runtime, cores, env=self.environment)
        self.texts = {name: _printed(place / name)[size:] for name, size in before.items()}
        return ended

    def pass_through(self, is_over: Watch | None = None) -> int:
        """Runs the command in the foreground, until it ends or is over; its exit code."""
        return pass_through(self.words, self.environment, is_over, self.runtime)

    def finish(self, code: int, *remarks: str) -> Record:
        """Writes record.json, with remarks among its notes. OSError where the disk is full."""
        seconds = time.perf_counter() - self.clock
        if self.runtime:
            self.runtime.settle()
        processes = lines.processes(self.folder)
        trained = [process for process in processes if process.steps]
        files = outputs.matched(self.patterns, self.run)
        new = outputs.written(self.before, outputs.states(files))
        hashes = outputs.hashes({name: path for name, path in files.items() if name in new})
        measured = self._metrics(processes)
        inside, too_many = written.in_folder(self.run) if self.run and self.all_files else ({}, None)
        own = written.hashed(inside, trained)
        digests = hashes | {name: file.sha256 for name, file in own.items()}
        launchers = {one.about.parent for one in trained}  # as torchrun, which trains nothing itself
        telling = [one for one in processes if one.steps or one.about.pid not in launchers]
        unmatched = [pattern for pattern in self.patterns if not outputs.matched([pattern], self.run)]
        notes = [*remarks, *([too_many] if too_many else [])]
        notes += [f"--output {escaped(pattern)} names no file that the command wrote" for pattern in unmatched]
        notes += [note for process in telling for note in process.notes]
        notes += [f"{name} was there before, and the command did not write it" for name in files if name not in new]
        content = Content(
            schema=SCHEMA,
            command=list(self.command),
            folder=str(self.place),
            started=self.started.isoformat(timespec="seconds"),
            seconds=seconds,
            exit_code=code,
            every=self.every,
            facts=provenance.facts(self.variables, processes) | self._facts | self._numerics,
            processes=[
                TrainedProcess(
                    name=one.name, rank=one.rank, steps=one.last, frameworks=one.about.frameworks, seal=one.seal
                )
                for one in trained
            ],
            outputs=hashes,
            notes=list(dict.fromkeys(notes)),
            fingerprint=record.fingerprint(trained, hashes),
            loaded=bool(processes) or (self.folder / STEPS / LOADED).exists(),
            unseen=_unseen(processes),
            metrics=metrics.write(self.folder, measured) if measured else UNSET,
            written=own or UNSET,
            run=str(self.run) if self.run else UNSET,
            checkpoints=self._checkpoints(trained) if self.checkpoints else UNSET,
            contents=written.write(self.folder, files | inside, digests) or UNSET,
        )
        write_json(self.folder / FILE, signature.signed(msgspec.to_builtins(content)))
        return Record(self.folder, content, trained, metrics=measured)

    def _checkpoints(self, processes: Sequence[Process]) -> list[CheckpointChange]:
        """The checkpoints that were copied, by the names that --checkpoints gives them."""
        return gathered(self.folder, processes, self._named)

    def _named(self, path: Path) -> str:
        """The name of a file: below `{run}`, or from the folder that the command was started in."""
        path = Path(command_line.outside(self.runtime.container, str(path))) if self.runtime else path
        elsewhere = self.run is None or not path.is_relative_to(self.run)
        short = path.relative_to(self.place) if elsewhere and path.is_relative_to(self.place) else path
        return outputs.named_file(short, self.run)

    def _inside(self, pattern: str) -> str:
        """A pattern of files as the command's processes know them: a container has other paths."""
        whole = os.path.join(self.place, pattern)
        return command_line.inside(self.runtime.container, whole) if self.runtime else whole

    def _metric_files(self) -> dict[str, Path]:
        """The files that may hold metrics: in `{run}`, and those that --output names."""
        files = outputs.matched([*([RUN] if self.run else []), *self.patterns], self.run)
        return {name: path for name, path in files.items() if metric_files.may_hold(path)}

    def _metrics(self, processes: Sequence[Process]) -> list[Metric]:
        """What the command logged, printed or wrote as its scores."""
        files = self._metric_files()
        new = outputs.written(self.metrics_before, outputs.states(files))
        return metrics.gathered(processes, self.texts, {name: path for name, path in files.items() if name in new})


def _printed(path: Path) -> bytes:
    """What was printed into a file, as far as it is read."""
    try:
        return path.read_bytes()[: metrics.LARGEST]
    except OSError:
        return b""


def _unseen(processes: Sequence[Process]) -> list[str]:
    """Descriptions of what was not fully observed, with the rank if there are several."""
    several = len({process.rank for process in processes}) > 1
    return list(
        dict.fromkeys(
            f"rank {one.rank}, {text}" if several and one.rank is not None else text
            for one in processes
            for text in one.unseen
        )
    )
