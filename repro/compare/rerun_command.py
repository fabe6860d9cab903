"""Reruns of recorded commands, for `compare --narrow`.

Both run up to the step in which they diverge, and each operation of it is hashed.

This is the one place where something that a record names is run. It is shown before, and refused where the files
that the command names are not those that were recorded. What another user or another machine recorded is run only where
somebody who has seen the command says so.
"""

import contextlib
import logging
import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from repro.compare import operations, variables
from repro.compare.difference import Difference, first_difference
from repro.compare.live import Live
from repro.compare.pairs import Pair
from repro.console import confirmed
from repro.errors import ReproError, UsageError
from repro.files import read_json
from repro.record import lines, provenance, signature
from repro.record.injection import Portable, unobserved
from repro.record.lines import STARTS, Process
from repro.record.record import FILE, Content, Record
from repro.record.recording import Recording
from repro.structs import Flaw, converted

log = logging.getLogger(__name__)

COMPUTED = ("gradients", "optimizer", "weights", "buffers")
"""The channels that operations of the step explain: all that comes before is equal."""


def narrowed(a: Record, b: Record, difference: Difference, trusted: bool = False) -> str:
    """Finds the operation with which a difference begins, in words. `trusted`: a stranger's command may be run.

    UsageError where that cannot be asked, ReproError where a command no longer gives its recorded bits.
    """
    pair = _narrowable(difference)
    reruns = [Rerun(a, "A"), Rerun(b, "B")]
    check_trusted(reruns, trusted)
    with tempfile.TemporaryDirectory(prefix="repro-narrow-") as scratch:
        if difference.equal_before != (difference.step or 0) - 1:  # steps between were not hashed
            difference = _rerun_both(reruns, Path(scratch) / "steps", difference, pair.offset, narrow=False)[2]
        first, second, difference = _rerun_both(
            reruns, Path(scratch) / "operations", difference, pair.offset, narrow=True
        )
        pair, step = _narrowable(difference), difference.step or 0
        began = operations.recorded(first, second, difference)
        if began is None:
            raise ReproError(f"compare: no operation of step {step} was seen{_operation_notes(pair)}")
    return f"in step {step}, {began.replace(f'({reruns[0].folder}{os.sep}', '(')}{_operation_notes(pair)}"


def _narrowable(difference: Difference) -> Pair:
    """The processes that differ. UsageError where no operation of a step can be the cause."""
    if difference.pair is None or not difference.step or difference.channel not in COMPUTED or difference.lengths:
        raise UsageError(
            f"compare: --narrow looks into a step whose batch, generators and weights are equal before it; here the "
            f"{difference.channel} differ first"
        )
    for process in (difference.pair.a, difference.pair.b):
        if not is_narrowable(process):
            raise UsageError(
                "compare: --narrow looks into steps of PyTorch alone: JAX, TensorFlow and Keras compile a step into "
                "one program, in which no single operation can be observed"
            )
    return difference.pair


def is_narrowable(process: Process) -> bool:
    """True if single operations of a process can be observed."""
    return "torch" in process.about.frameworks and "keras" not in process.about.frameworks


def check_trusted(reruns: list["Rerun"], trusted: bool) -> None:
    """Shows what will be run. UsageError where it is a stranger's, and nobody says that it may be."""
    for rerun in reruns:
        rerun.show()
    others = " and ".join(dict.fromkeys(str(rerun.recorded.path) for rerun in reruns if not rerun.own))
    if others and not trusted and not confirmed(f"{others}: not recorded by you on this machine. Run these commands?"):
        raise UsageError(
            f"{reruns[0].asked} has run nothing, as you have not recorded {others} on this machine; read the commands above, and run them with --trust"
        )


def _rerun_both(
    reruns: list["Rerun"], folder: Path, difference: Difference, offset: int, narrow: bool
) -> tuple[Record, Record, Difference]:
    """Reruns both up to the step in which they diverge; returns where they diverge when every step is hashed."""
    steps = [difference.step or 0, (difference.step or 0) - offset]
    a, b = (rerun(folder / rerun.name, step, narrow) for rerun, step in zip(reruns, steps, strict=True))
    again = first_difference(a, b)
    if again is None:
        raise ReproError(f"compare: run again, the two are equal up to step {difference.step}")
    return a, b, again


def _operation_notes(pair: Pair) -> str:
    """Notes on operations of this step that the observer could not see."""
    notes = dict.fromkeys([*pair.a.notes, *pair.b.notes])
    return "".join(f"; {note}" for note in notes if "operations" in note)


@dataclass
class Rerun:
    """The command of a record, to be run again as it was: in its folder, with the variables that can change bits."""

    recorded: Record
    name: str
    asked: str = "compare: --narrow"
    """The command and the option that ask for it."""
    as_it_is: bool = True
    """True if the files that it names must be those of today; otherwise they come from a commit."""

    def __post_init__(self) -> None:
        """Raises UsageError if it cannot be run again, or is not known to be the same command."""
        content = self.recorded.content
        self.command = content.command
        self.folder = Path(content.folder)
        raw = self._as_it_is()
        self.own = signature.is_own(raw)
        try:
            recorded = converted(content.facts.get("environment"), dict[str, str])
        except Flaw:
            self._refuse("it does not hold the variables of its run")
        self.variables, self.left_out = variables.taken(recorded), variables.left_out(recorded, os.environ)
        try:
            self.portable = Portable.from_fact(content.facts.get("portable_numerics"))
        except Flaw as flaw:
            self._refuse(str(flaw))
        if not self.folder.is_dir():
            self._refuse(f"the folder that it was run in does not exist: {self.folder}")
        try:
            scripts = converted(content.facts.get("scripts"), dict[str, str])
        except Flaw:
            scripts = {}
        if not scripts:
            self._refuse("its command names no script file, so whether it is still the same program is unknown")
        self.scripts = scripts
        if self.as_it_is:
            self.check_scripts()

    def check_scripts(self) -> None:
        """Raises UsageError if a file that the command names is not the one that was recorded."""
        now = provenance.scripts(self.command, self.folder)
        if now != self.scripts:
            other = next((n for n in sorted({*now, *self.scripts}) if now.get(n) != self.scripts.get(n)), "")
            self._refuse(f"{other} is not the file that was recorded; record the command again")

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(f"{self.asked} cannot run the command of {self.recorded.path} again: {why}")

    def _as_it_is(self) -> Any:
        """Reads record.json as it was written: what is shown is what is run, and reading a record made it printable."""
        try:
            raw = read_json(self.recorded.path / FILE)
            same = converted(raw, Content) == self.recorded.content
        except (OSError, ValueError):
            same = False
        if not same:
            self._refuse(f"{FILE} was changed meanwhile")
        for part in (("command",), ("folder",), ("facts", "environment")):
            ours: Any = msgspec.to_builtins(self.recorded.content)
            theirs = raw
            for key in part:
                ours, theirs = ours.get(key), theirs.get(key)
            if ours != theirs:
                self._refuse(f"its {part[-1]} holds characters that cannot be shown")
        return raw

    def show(self) -> None:
        """Says what will be run."""
        other = {name: text for name, text in self.variables.items() if os.environ.get(name) != text}
        words = [f"{name}={text}" for name, text in other.items()]
        words += [*(self.portable.words if self.portable else []), *self.command]
        log.info("%s will run again in %s: %s", self.name, self.folder, shlex.join(words))
        if self.left_out:
            names = ", ".join(self.left_out)
            log.info("%s: not set as recorded, because they can do more than steer numerics: %s", self.name, names)

    def __call__(self, to: Path, step: int, narrow: bool = False, keep: bool = False) -> Record:
        """Runs it until it has taken a step. ReproError where its bits are not those that were recorded.

        `keep`: the arrays of the last steps stay in the folder.
        """
        log.info("%s again, until step %d", self.name, step)
        with contextlib.chdir(self.folder):
            recording = Recording(
                self.command,
                to / "record",
                variables=unobserved(variables.without(os.environ) | self.variables),
                keep=keep,
                narrow=step if narrow else None,
                portable=self.portable,
            )
            live = Live(self.recorded, recording.folder, False, keep, until=step)
            ended = recording.carry_out(live.is_over)
        failed = ended.error if ended.code > 0 else ""
        seen = Record(recording.folder, self.recorded.content, trained(recording.folder))
        self._check_bits(seen, step, failed)
        return seen

    def _check_bits(self, seen: Record, step: int, failed: str) -> None:
        pairs = list(zip(self.recorded.processes, seen.processes, strict=False))
        other = next((part for ours, theirs in pairs if (part := _other_bits(ours, theirs, step))), None)
        if len(seen.processes) != len(self.recorded.processes) or not pairs:
            other = f"{len(seen.processes)} processes took steps, {len(self.recorded.processes)} are recorded"
        if other:
            ours, theirs = (one.processes[0].about.threads if one.processes else None for one in (self.recorded, seen))
            threads = f"; it had {ours} threads, and has {theirs}" if ours != theirs and theirs is not None else ""
            raise ReproError(
                f"{self.asked.partition(':')[0]}: {self.recorded.path}, run again, does not give the bits that were recorded, so nothing can be said of its steps: {other}{threads}{f'; it said: {failed}' if failed else ''}"
            )


def trained(folder: Path) -> list[Process]:
    return [process for process in lines.processes(folder) if process.steps]


def _other_bits(ours: Process, theirs: Process, until: int) -> str | None:
    """The first place where a run differs from its record, up to a step, but for generators that nothing draws from."""
    drawn = ours.moving()
    for step, channels in sorted(ours.steps.items()):
        if step > until:
            continue
        if step not in theirs.steps:
            return f"step {step} was not taken"
        for channel, hashes in channels.items():
            again: Mapping[str, str] = theirs.steps[step].get(channel, {})
            if any(again.get(name) != code for name, code in hashes.items() if channel != "generator" or name in drawn):
                return f"the {channel} {'before the first step' if channel == STARTS else f'at step {step}'} differ"
    return None
