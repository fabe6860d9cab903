"""Runs of a command of one's own.

A run is a fresh process of the command with a change, its record, and what it printed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from repro.compare.live import Live, begun
from repro.containers import command_line
from repro.containers.image import Place, moved, runtime
from repro.files import check_space, current_folder, matching
from repro.inject.delays import SLOWED
from repro.inject.listings import LISTED
from repro.inject.marks import MARK
from repro.machine import gpu
from repro.record import contents, outputs
from repro.record.injection import unobserved
from repro.record.lines import STEPS
from repro.record.process import describe_exit
from repro.record.record import Record
from repro.record.recording import Recording
from repro.text import RUN, listed, slug
from repro.verify import caches, checkpoint_copies, checkpoints, surroundings, windows
from repro.verify.checkpoints import Checkpoints
from repro.verify.questions import FULLY_HASHED, Change
from repro.verify.resumption import lacks_checkpoint
from repro.verify.stops import Stop
from repro.verify.trial import Command, Trial


@dataclass
class Trials:
    """Carries out runs, one after another, each with a folder of its own below `folder`."""

    command: Command
    folder: Path
    knows_files: bool = False
    """True if a whole run reported the files that it wrote, or left some in its own folder."""
    ignored: set[str] = field(default_factory=set)
    """Names of files that the command could not resume from."""
    outside: set[str] = field(default_factory=set)
    """Files that its processes left outside of the folders of runs."""
    folders: set[str] = field(default_factory=set)
    """The folders that were there before the first run."""
    controls: bool = False
    """True if runs that are resumed once keep what faults are planted from."""

    @property
    def run_folder(self) -> Path:
        """The folder that `{run}` stands for, always the same path: many programs write it into their checkpoints."""
        return self.folder / "now" / "run"

    def resumed(self, change: Change, stops: Sequence[Stop], whole: Record) -> Trial:
        """Carries out a change with stops, again and later where there was nothing to go on from."""
        trial = self.run(change, stops)
        later: Trial | None = trial
        while later and later.stopped_with and lacks_checkpoint(later, whole):
            later = self._later(trial, stops)
            trial = later or trial
        if trial.parts:
            trial.name_as(whole)
        return trial

    def _later(self, trial: Trial, stops: Sequence[Stop]) -> Trial | None:
        """Run again, stopped once it has written a file of another name than until now; None where it never does."""
        kept = trial.folder.rename(trial.folder.with_name(f"{trial.folder.name}.earlier"))
        ignored, self.ignored = self.ignored, self.ignored | trial.stopped_with
        later = self.run(trial.change, stops)
        shutil.rmtree(kept if later.parts else later.folder)
        if later.parts:
            return later
        self.ignored = ignored
        kept.rename(trial.folder)
        return None

    def forget_copies(self) -> None:
        """Removes what faults were planted from."""
        for folder in self.folder.iterdir():
            checkpoint_copies.forget(folder)

    def run(self, change: Change, stops: Sequence[Stop] = (), baseline: Record | None = None) -> Trial:
        """Carries out a change; its failure is the trial's `error`. `stops`: the points at which it is stopped.

        `baseline`: the record that it is compared with, and that it need not go on from once it differs.
        """
        trial = Trial(change, self.command, self.folder / slug(change.label))
        trial.folder.mkdir(parents=True)
        self.run_folder.mkdir(parents=True, exist_ok=True)
        try:
            with caches.aside(self.outside, trial.folder, change, self.folders):
                self._carry_out(trial, stops, baseline)
            if change.caches == "emptied":
                trial.left = caches.found(self.outside, trial.folder)
        finally:
            if self.run_folder.exists():  # a command may remove it
                self.run_folder.rename(trial.folder / "run")
            self.run_folder.mkdir()  # for `compare --narrow`, which runs the same command again
        return trial

    def _carry_out(self, trial: Trial, stops: Sequence[Stop], baseline: Record | None) -> None:
        change = trial.change
        places, own = surroundings.places(self.command.words), self.folder.resolve()
        self.folders = self.folders or outputs.folders(*places, without=own)
        before, started = self._files(), time.perf_counter()
        if change.course == "resumed":
            checkpoint_copies.put_back(self.folder / slug(change.stopped), self.run_folder)
        hashed = change.stops or change.course in ("resumed", "alone") or change == FULLY_HASHED
        every = 1 if hashed else self.command.every
        stopped = None
        for number, stop in enumerate(stops):
            stopped = self._until_stopped(trial, number, stop, stopped)
            if stopped is None:
                break
        else:
            self._once(trial, len(change.stops) or int(change.course == "resumed"), every, stopped, baseline)
        trial.seconds = time.perf_counter() - started
        changed = outputs.written(before, self._files())
        known = self._known(trial.folder)
        trial.changed_files, trial.wrote = bool(changed), outputs.own(changed, known)
        self.outside |= caches.outside(known, self.folder.resolve())
        self.knows_files |= bool(trial.wrote) or any(self.run_folder.glob("*"))

    def _words(self, trial: Trial, number: int) -> tuple[Sequence[str], str]:
        """The words of a process of a run, and the folder of its record: the first, and those that go on."""
        if number == 0:
            return self.command.changed(trial.change), "record"
        assert self.command.resume is not None
        return self.command.resume, "resumed" if number == 1 else f"resumed-{number}"

    def _files(self) -> dict[str, outputs.State]:
        """The states of the files that the command may write, without ours."""
        return outputs.folder(*surroundings.places(self.command.words), without=self.folder.resolve())

    def _known(self, folder: Path) -> set[str]:
        """The files that the observed processes of a run wrote, and those that --output names."""
        named = [outputs.named(record.parent) for record in folder.glob(f"*/{STEPS}")]
        given = map(os.path.realpath, outputs.matched(self.command.patterns, self.run_folder).values())
        return {*given}.union(*named)

    def _damaged(self) -> str:
        """Names the files in the run's folder that are cut off, as the end of a line: the command may have been writing them."""
        files = outputs.matched([RUN], self.run_folder)
        names = [name for name, path in files.items() if contents.is_damaged(path)]
        return f"; incomplete: {listed(names)}" if names else ""

    def _once(self, trial: Trial, number: int, every: int, stopped: Recording | None, baseline: Record | None) -> None:
        """One process to its end, or until it differs. It may go on where one was stopped, whose outputs are its own, too."""
        recording, resumed = self._recording(trial, number, every), trial.change.course == "resumed"
        early = baseline and (resumed or trial.change.course == "straight") and trial.change.observed
        recording.all_files = self.command.compares_all_files
        recording.before = stopped.before if stopped else recording.before
        live = Live(baseline, recording.folder, resumed, until=trial.change.until) if baseline and early else None
        ended = recording.carry_out(live.is_over if live else None, cores=trial.change.cores)
        if ended.code and not ended.stopped:
            check_space(trial.folder)
            who, damaged = ("the --resume command", self._damaged()) if number else ("it", "")
            error = f"{who} {describe_exit(ended.code)}: {ended.error}".removesuffix(": ") + damaged
            if resumed:  # the fault's doing, or that of going on from a copy
                trial.fails = error
            else:
                trial.error = error
            return
        record = recording.finish(ended.code)
        if live and ended.stopped:
            trial.divergence, record = live.first_difference(record.processes), begun(record)
        trial.computed = recording.computed
        if trial.computed and not trial.computed.on:
            trial.error = str(trial.computed)
            return
        trial.hashes = record.outputs
        trial.slowed, trial.changed = (
            [file.name.removeprefix(kind) for file in matching(record.path / STEPS, f"{kind}*")]
            for kind in (SLOWED, MARK)
        )
        with contextlib.suppress(OSError):
            trial.listed = (record.path / STEPS / LISTED).read_text(errors="replace").splitlines()
        trial.files = record
        trial.record = record if trial.change.observed else None

    def _until_stopped(self, trial: Trial, number: int, stop: Stop, before: Recording | None) -> Recording | None:
        """One process until it has written a file and taken a step since, late enough; then it is stopped."""
        recording, files = (
            self._recording(trial, number, 1, stop.step if stop.window is None else stop.window),
            self._checkpoints(trial),
        )
        recording.before = before.before if before else recording.before
        how = signal.SIGKILL if trial.change.course == "kill" else signal.SIGTERM
        is_over = partial(self._is_due, trial, recording, stop, files)
        ended = recording.carry_out(is_over, how, trial.change.cores)
        if ended.stopped:
            trial.parts.append(recording.finish(ended.code))
            if self._tries_faults(trial):
                checkpoint_copies.keep(self.run_folder, trial.folder)
            return recording
        check_space(trial.folder)
        who = (
            "the --resume command, before it could be stopped again, " if number else "before it could be stopped, it "
        )
        trial.error = f"{who}{describe_exit(ended.code)}: no step was seen after step {stop.step} and after a file that it could resume from; let it write checkpoints more often, or take more steps"
        return None

    def _is_due(
        self, trial: Trial, recording: Recording, stop: Stop, files: Checkpoints, process: subprocess.Popen[bytes]
    ) -> bool:
        """True if it is to be stopped now; waits for that, or for its end."""
        steps = recording.folder / STEPS
        if stop.window is None:
            due = checkpoints.is_due(process, steps, stop.step, files)
        else:
            passes = windows.passes_at_stop(process, steps, stop.step, files.before, files.files)
            trial.stopped_within, due = bool(passes), passes is not None
        if due:
            trial.stopped_with |= files.written().keys()
        return due

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

    def _variables(self, trial: Trial, more: Sequence[tuple[str, str]]) -> dict[str, str]:
        variables = surroundings.variables((*trial.environment, *more))
        if trial.change.caches != "kept":
            variables |= caches.variables(caches.folder(trial.folder, trial.change), variables)
        return variables

    def _tries_faults(self, trial: Trial) -> bool:
        """True if faults may be planted later where this run, which is resumed once, goes on."""
        return self.controls and len(trial.change.stops) == 1 and command_line.find(self.command.words) is None

    def _recording(self, trial: Trial, number: int, every: int, hold: int | None = None) -> Recording:
        folder, (words, name) = self.run_folder, self._words(trial, number)
        in_place = [outputs.in_run(word, folder) for word in words]
        if trial.change.runtime == "image":
            assert self.command.image is not None
            here = Place(current_folder(), folder, (os.getuid(), os.getgid()), surroundings.deciding(), gpu.count() > 0)
            in_place = moved(in_place, self.command.image, here, runtime(self.command.image))
        container = command_line.find(in_place) is not None
        tried = checkpoint_copies.variables(trial.folder, number) if self._tries_faults(trial) else ()
        if trial.change.fault is not None:
            tried = checkpoint_copies.planting(self.folder / slug(trial.change.stopped), trial.change.fault)
        trial.faked = trial.change.clock is not None and not container and surroundings.has_faketime()
        return Recording(
            [*trial.faketime, *in_place],
            trial.folder / name,
            self.command.patterns,
            every,
            self.command.keep,
            run=folder,
            variables=unobserved(os.environ) if container else self._variables(trial, tried),
            changes=surroundings.inside(trial.change) if container else command_line.Addition(),
            observed=trial.change.observed,
            portable=self.command.portable,
            hold=hold,
        )
