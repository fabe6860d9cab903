"""Trainings that follow one another in a command, each as a record."""

from dataclasses import dataclass, replace

from repro.compare.names import number_of, renumbered
from repro.record import trainings
from repro.record.lines import CHANGED, STARTS, Hashes, Process
from repro.record.record import Record

PREFIXED = (STARTS, CHANGED, "generator", "scalars", "gradients", "optimizer", "weights", "buffers")
"""The channels whose names begin with the number of an optimizer."""


@dataclass(frozen=True)
class Training:
    """Some steps of a process of a command."""

    command: Record
    process: Process
    first: int
    last: int

    @property
    def as_record(self) -> Record:
        """These steps alone, counted from 1, and their optimizers from 0."""
        return replace(self.command, processes=[self._process], metrics=[]).without_files()

    @property
    def _process(self) -> Process:
        hashed = {step: self.process.steps[step] for step in self._steps}
        stepping = (name for hashes in hashed.values() for name in hashes.get("gradients", hashes.get("weights", {})))
        numbers = {number: str(n) for n, number in enumerate(dict.fromkeys(map(number_of, stepping)))}
        steps = {step - self.first + 1: _renumbered(hashes, numbers) for step, hashes in hashed.items()}
        first = steps.get(1, {})
        starts = first.pop(STARTS, {}) or _renumbered({STARTS: self._before}, numbers)[STARTS]
        lines = {step - self.first + 1: line for step, line in self.process.lines.items() if step in hashed}
        return replace(self.process, steps={0: {STARTS: starts}, **steps}, lines=lines, metrics=[])

    @property
    def _steps(self) -> list[int]:
        return [step for step in sorted(self.process.steps) if self.first <= step <= self.last]

    @property
    def _before(self) -> dict[str, str]:
        """The weights as its first step begins, where no optimizer is new."""
        before = self.process.steps.get(self.first - 1, {})
        weights = before.get("weights", {}) | before.get(STARTS, {})
        return weights | self.process.steps.get(self.first, {}).get(CHANGED, {})

    @property
    def ends(self) -> dict[str, str]:
        """The weights after its last step."""
        weights: dict[str, str] = self.process.steps.get(self.last, {}).get("weights", {})
        return weights


def of_command(command: Record, one: Record) -> list[Training]:
    """The trainings of a command, each like that of the record `one`; in the order of the command's processes."""
    like = max(one.processes, key=lambda process: process.last)
    return [training for process in command.processes for training in _of_process(command, process, like)]


def _of_process(command: Record, process: Process, like: Process) -> list[Training]:
    begins = trainings.begins(process)[:: len(trainings.begins(like))]
    if len(begins) == 1 and process.last > like.last and process.last % like.last == 0:
        begins = [*range(1, process.last + 1, like.last)]  # one optimizer, and its weights, for all of them
    ends = [*(step - 1 for step in begins[1:]), process.last]
    return [Training(command, process, first, last) for first, last in zip(begins, ends, strict=True)]


def _renumbered(hashes: Hashes, numbers: dict[str, str]) -> Hashes:
    """The hashes with other numbers of optimizers, without those of optimizers that have none."""
    return {
        channel: {
            renumbered(name, numbers.get(number_of(name), "")): code
            for name, code in of.items()
            if not number_of(name) or number_of(name) in numbers
        }
        if channel in PREFIXED
        else of
        for channel, of in hashes.items()
    }
