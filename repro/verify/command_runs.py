"""Runs of a command of one's own.

A run is a fresh process of the command with a change, its record, and what it printed.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import UNSET

from repro.compare.difference import Difference
from repro.compare.live import Live, begun
from repro.compare.pairs import pairs
from repro.containers import command_line
from repro.containers.image import Place, moved, runtime
from repro.files import check_space, current_folder, matching, naming
from repro.inject.delays import SLOWED
from repro.record import outputs
from repro.record.injection import Portable, unobserved
from repro.record.lines import STEPS, Process
from repro.record.portable import Computed
from repro.record.process import describe_exit, error_line, own_session, terminate
from repro.record.record import Record, fingerprint
from repro.record.recording import Recording
from repro.run import gpu
from repro.text import slug
from repro.verify import checkpoints, surroundings, windows
from repro.verify.checkpoints import Checkpoints
from repro.verify.questions import FULLY_HASHED, Change
from repro.verify.results import COMMAND, DONE, FAILED, Run
from repro.verify.stops import Stop
from repro.verify.timeline import Part, parts
from repro.verify.vary import with_option

CUT_OFF = "what was being written when the command was stopped may be incomplete"


@dataclass
class Command:
    """The command that questions are about, and what the user says of it."""

    words: Sequence[str]
    resume: Sequence[str] | None = None
    seed_option: str | None = None
    patterns: Sequence[str] = ()
    every: int = 1
    image: str | None = None
    """A Docker image, or a SIF."""
    keep: bool = False
    """Whether runs keep the arrays that are hashed."""
    portable: Portable | None = None
    """Whether it is run with portable numerics."""

    @property
    def typed(self) -> str:
        """The words, as somebody types them who wants the same without `verify`."""
        return self.with_portable(self.words)

    def with_portable(self, words: Sequence[str]) -> str:
        """Words of this command as a line of a shell."""
        return shlex.join([*(self.portable.words if self.portable else []), *words])

    def changed(self, change: Change) -> list[str]:
        """The words with another seed, or another value of an option, where a change has one."""
        words = list(self.words)
        if change.seed:
            assert self.seed_option is not None
            words = with_option(words, self.seed_option, change.seed)
        return with_option(words, *change.option) if change.option else words


@dataclass
class Trial:
    """The result of one run."""

    change: Change
    command: Command
    folder: Path
    seconds: float = 0.0
    record: Record | None = None
    """None where it was not observed, or failed; of a command that was resumed, of its last process."""
    parts: list[Record] = field(default_factory=list)
    """The records of those that were stopped, and resumed by the next."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each output file."""
    error: str | None = None
    computed: Computed | None = None
    """What was computed with portable numerics."""
    wrote: set[str] = field(default_factory=set)
    """Files that its processes wrote below the folder that the command was started in, as far as they are known."""
    changed_files: bool = False
    """Whether files changed there, whoever wrote them."""
    left_out: list[str] = field(default_factory=list)
    """Output files that are not compared: they differ from run to run, or only one of two runs wrote them."""
    incomparable: bool = False
    """Whether it lacks outputs or weights of the baseline, so that its fingerprint is one of others."""
    named: list[Process] | None = None
    """Of a resumed run its processes, with the names that the whole one's arrays have."""
    divergence: Difference | None = None
    """The first difference from the baseline, where the run was stopped at it."""
    reversed_listings: list[str] = field(default_factory=list)
    """Folders whose names were given in the reverse order."""
    slowed: list[str] = field(default_factory=list)
    """Kinds of what was slowed: threads, processes, ranks."""
    faked: bool = False
    """Whether the program faketime gave it another clock."""
    stopped_with: set[str] = field(default_factory=set)
    """The files that it had written when it was stopped."""
    stopped_within: bool = False
    """Whether it was stopped between two backward passes of a step."""

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """The variables that are changed."""
        return surroundings.REAL_STAT if self.faked else self.change.environment

    @property
    def faketime(self) -> list[str]:
        """The program that runs the command with another clock."""
        return [surroundings.FAKETIME, "-f", self.change.clock] if self.faked and self.change.clock else []

    @property
    def fingerprint(self) -> str | None:
        """The record's; None without one, or where it is one of other files or weights."""
        return self.record.content.fingerprint if self.record and not self.incomparable else None

    def name_as(self, whole: Record) -> None:
        """Has the fingerprint be one of the whole run's names, if both end with as many weights."""
        if self.record is None:
            return
        self.named = [pair.b for pair in pairs(whole, self.record, resumed=True)]
        ends = ([process.weights.keys() for process in one] for one in (whole.processes, self.named))
        self.incomparable = next(ends) != next(ends)
        self._compute_fingerprint()

    def _compute_fingerprint(self) -> None:
        if self.record:
            processes = self.record.processes if self.named is None else self.named
            self.record.content.fingerprint = fingerprint(processes, self.record.outputs)

    def leave_out(self, names: Sequence[str]) -> None:
        """Takes files out of what is compared; the record on disk keeps them."""
        self.left_out += names
        for name in names:
            self.hashes.pop(name, None)
        if self.record:
            for name in names:
                self.record.outputs.pop(name, None)
        self._compute_fingerprint()

    def as_run(self) -> Run:
        """The run as results.json has it."""
        straight = self.change.course == "straight"
        words = self.command.changed(self.change) if straight else self.command.resume or []
        words = [*self.faketime, *words]
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return Run(
            task=COMMAND,
            numerics=self.command.typed,
            label=self.change.label,
            command=" ".join([*variables, self.command.with_portable(words)]),
            status=FAILED if self.error else DONE,
            steps=self.record.steps if self.record else 0,
            seconds=self.seconds,
            error=self.error,
            fingerprint=self.fingerprint,
            parts=self.timeline or UNSET,
            experiment={"facts": {"versions": {}, "scripts": {}} | self.record.facts} if self.record else None,
        )

    @cached_property
    def timeline(self) -> list[Part]:
        """Its processes over the steps."""
        return parts(self.folder, self.wrote) if self.change.observed else []

    @property
    def stdout(self) -> bytes:
        """What the command printed."""
        return (self.folder / "stdout").read_bytes()


@dataclass
class Trials:
    """Carries out runs, one after another, each with a folder of its own below `folder`."""

    command: Command
    folder: Path
    knows_files: bool = False
    """Whether the observed processes of a whole run said which files they wrote, or it left some in its own folder."""
    ignored: set[str] = field(default_factory=set)
    """Names of files that the command could not resume from."""

    @property
    def run_folder(self) -> Path:
        """What `{run}` stands for. The same path in each run, as many programs write it into their checkpoints."""
        return self.folder / "now" / "run"

    def again(self, trial: Trial, stops: Sequence[Stop]) -> Trial | None:
        """The same run, stopped later: once it has written a file of another name than until now; None where it never does."""
        kept = trial.folder.rename(trial.folder.with_name(f"{trial.folder.name}.earlier"))
        ignored, self.ignored = self.ignored, self.ignored | trial.stopped_with
        later = self.run(trial.change, stops)
        shutil.rmtree(kept if later.parts else later.folder)
        if later.parts:
            return later
        self.ignored = ignored
        kept.rename(trial.folder)
        return None

    def run(self, change: Change, stops: Sequence[Stop] = (), baseline: Record | None = None) -> Trial:
        """Carries out a change; its failure is the trial's `error`. `stops`: the points at which it is stopped.

        `baseline`: the record that it is compared with, and that it need not go on from once it differs.
        """
        trial = Trial(change, self.command, self.folder / slug(change.label))
        trial.folder.mkdir(parents=True)
        self.run_folder.mkdir(parents=True, exist_ok=True)
        try:
            self._carry_out(trial, stops, baseline)
        finally:
            if self.run_folder.exists():  # a command may remove it
                self.run_folder.rename(trial.folder / "run")
            self.run_folder.mkdir()  # for `compare --narrow`, which runs the same command again
        with contextlib.suppress(OSError):
            trial.reversed_listings = (trial.folder / "listings").read_text(errors="replace").splitlines()
        return trial

    def _carry_out(self, trial: Trial, stops: Sequence[Stop], baseline: Record | None) -> None:
        change = trial.change
        before, started = self._files(), time.perf_counter()
        every = 1 if change.stops or change == FULLY_HASHED else self.command.every
        stopped = None
        for number, stop in enumerate(stops):
            stopped = self._until_stopped(trial, number, stop, stopped)
            if stopped is None:
                break
        else:
            self._once(trial, len(change.stops), every, stopped, baseline)
        trial.seconds = time.perf_counter() - started
        changed = outputs.written(before, self._files())
        trial.changed_files, trial.wrote = bool(changed), outputs.own(changed, self._known(trial.folder))
        self.knows_files |= bool(trial.wrote) or any(self.run_folder.glob("*"))

    def _words(self, trial: Trial, number: int) -> tuple[Sequence[str], str]:
        """The words of a process of a run, and the folder of its record: the first, and those that go on."""
        if number == 0:
            return self.command.changed(trial.change), "record"
        assert self.command.resume is not None
        return self.command.resume, "resumed" if number == 1 else f"resumed-{number}"

    def _files(self) -> dict[str, outputs.State]:
        """How the files are in the folders that the command may write to, without ours."""
        return outputs.folder(*surroundings.places(self.command.words), without=self.folder.resolve())

    def _known(self, folder: Path) -> set[str]:
        """The files that the observed processes of a run wrote, and those that --output names."""
        named = [outputs.named(record.parent) for record in folder.glob(f"*/{STEPS}")]
        given = map(os.path.realpath, outputs.matched(self.command.patterns, self.run_folder).values())
        return {*given}.union(*named)

    def _once(self, trial: Trial, number: int, every: int, stopped: Recording | None, baseline: Record | None) -> None:
        """One process to its end, or until it differs. It may go on where one was stopped, whose outputs are its own, too."""
        recording, errors = self._recording(trial, number, every), trial.folder / "stderr"
        said_before = errors.stat().st_size if errors.exists() else 0
        recording.before = stopped.before if stopped else recording.before
        try:
            with self._started(trial, recording) as process:
                early = baseline and trial.change.course == "straight" and trial.change.observed
                live = Live(baseline, recording.folder, False) if baseline and early else None
                if live and live.is_over(process):
                    terminate(process, signal.SIGTERM, recording.runtime)
                code = process.wait()
        finally:
            if recording.runtime:
                recording.runtime.remove()
        if code and not (live and live.over):
            check_space(trial.folder)
            who, cut = ("the --resume command", f"; {CUT_OFF}") if stopped else ("it", "")
            trial.error = f"{who} {describe_exit(code)}: {error_line(errors, said_before)}".removesuffix(": ") + cut
            return
        record = recording.finish(code)
        if live and live.over:
            trial.divergence, record = live.first_difference(record.processes), begun(record)
        trial.computed = recording.computed
        if trial.computed and not trial.computed.on:
            trial.error = str(trial.computed)
            return
        trial.hashes = record.outputs
        trial.slowed = [file.name.removeprefix(SLOWED) for file in matching(record.path / STEPS, f"{SLOWED}*")]
        trial.record = record if trial.change.observed else None

    def _until_stopped(self, trial: Trial, number: int, stop: Stop, before: Recording | None) -> Recording | None:
        """One process until it has written a file and taken a step since, late enough; then it is stopped."""
        kill = trial.change.course == "kill"
        recording, files = self._recording(trial, number, 1, stop.window), self._checkpoints(trial)
        recording.before = before.before if before else recording.before
        try:
            with self._started(trial, recording) as process:
                if self._is_due(trial, recording, process, stop, files):
                    trial.stopped_with |= files.written().keys()
                    terminate(process, signal.SIGKILL if kill else signal.SIGTERM, recording.runtime)
                    trial.parts.append(recording.finish(process.returncode))
                    return recording
                end = describe_exit(process.wait())
            check_space(trial.folder)
            who = (
                "the --resume command, before it could be stopped again, "
                if number
                else "before it could be stopped, it "
            )
            trial.error = f"{who}{end}: no step was seen after step {stop.step} and after a file that it could resume from; let it write checkpoints more often, or take more steps"
            return None
        finally:
            if recording.runtime:
                recording.runtime.remove()
                recording.runtime.settle()

    def _is_due(
        self, trial: Trial, recording: Recording, process: subprocess.Popen[bytes], stop: Stop, files: Checkpoints
    ) -> bool:
        """Whether it is to be stopped now; waits for that, or for its end."""
        steps = recording.folder / STEPS
        if stop.window is None:
            return checkpoints.is_due(process, steps, stop.step, files)
        passes = windows.passes_at_stop(process, steps, stop.step, files.before, files.files)
        trial.stopped_within = bool(passes)
        return passes is not None

    def _checkpoints(self, trial: Trial) -> Checkpoints:
        """Files that a process of a run writes: in the run's own folder, and elsewhere those that are known to be its own.

        Where nothing is known of a whole run's files, all that change.
        """
        elsewhere = self._files()

        def files() -> dict[str, outputs.State]:
            now = self._files()
            changed = outputs.written(elsewhere, now)
            own = outputs.own(changed, self._known(trial.folder)) if self.knows_files else changed
            return {name: now[name] for name in own} | outputs.folder(self.run_folder)

        return Checkpoints(files, outputs.folder(self.run_folder), self.ignored)

    def _recording(self, trial: Trial, number: int, every: int, hold: int | None = None) -> Recording:
        folder, (words, name) = self.run_folder, self._words(trial, number)
        listings = trial.folder / "listings" if trial.change.reversed_listings else None
        in_place = [outputs.in_run(word, folder) for word in words]
        if trial.change.contained:
            assert self.command.image is not None
            here = Place(current_folder(), folder, (os.getuid(), os.getgid()), surroundings.deciding(), gpu.count() > 0)
            in_place = moved(in_place, self.command.image, here, runtime(self.command.image))
        container = command_line.find(in_place) is not None
        trial.faked = trial.change.clock is not None and not container and surroundings.has_faketime()
        return Recording(
            [*trial.faketime, *in_place],
            trial.folder / name,
            self.command.patterns,
            every,
            self.command.keep,
            run=folder,
            variables=unobserved(os.environ) if container else surroundings.variables(trial.environment, listings),
            changes=surroundings.inside(trial.change, listings) if container else command_line.Addition(),
            observed=trial.change.observed,
            portable=self.command.portable,
            hold=hold,
        )

    @contextlib.contextmanager
    def _started(self, trial: Trial, recording: Recording) -> Iterator[subprocess.Popen[bytes]]:
        with (
            naming(trial.folder),
            open(trial.folder / "stdout", "ab") as out,
            open(trial.folder / "stderr", "ab") as errors,
            own_session(
                recording.words,
                recording.runtime,
                trial.change.cores,
                env=recording.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            ) as process,
        ):
            yield process
