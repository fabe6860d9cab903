"""The question across machines, answered from their results.

No machine can ask it alone: does another one train to the same bits?
"""

import string
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations, product

from msgspec import structs

from repro.compare import facts
from repro.structs import Integer
from repro.verify.experiment import Experiment
from repro.verify.questions import DIFFERS, NOT_ASKED, SAME, AnswerWord, Promise, kept
from repro.verify.results import COMMAND, DONE, Answer, Cause, FirstDifference, GrowthPoint, Machine, Results, Run

QUESTION = "machine"

Deciding = Callable[[Experiment, Integer], dict[str, object]]
"""A function of the experiment and the number of steps: what decides the bits of a trainer's run on a given machine."""


@dataclass
class MachineResults:
    """Results whose machine describes itself alike; two of a kind cannot be distinguished, and count as one."""

    name: str
    machine: Machine
    results: list[Results] = field(default_factory=list)
    """The newest first."""

    @cached_property
    def runs(self) -> dict[tuple[str, str], dict[str, list[Run]]]:
        """Runs by framework and arithmetic, then by id, except those of a question that changes the arithmetic."""
        runs: dict[tuple[str, str], dict[str, list[Run]]] = {}
        for content in self.results:
            for name, run in content.runs.items():
                trained = run.trained
                if trained is None or trained.config.params.get("numerics") == run.numerics:
                    runs.setdefault((run.task, run.numerics), {}).setdefault(name, []).append(run)
        return runs


def unique(contents: Iterable[Results]) -> list[Results]:
    """Results of which each counts once, by its checksum; the newest first."""
    known = {content.seal or id(content): content for content in contents}
    return sorted(known.values(), key=lambda content: content.created, reverse=True)


def distinct(contents: list[Results]) -> list[MachineResults]:
    """The machines that results are from, A, B and so on in the order of the first of each."""
    machines: list[MachineResults] = []
    for content in contents:
        known = next((one for one in machines if one.machine == content.machine), None)
        if known is None:
            count = len(machines)
            name = string.ascii_uppercase[count] if count < 26 else str(count + 1)
            machines.append(known := MachineResults(name, content.machine))
        known.results.append(content)
        known.results.sort(key=lambda content: content.created, reverse=True)
    return machines


def summary(machine: Machine) -> str:
    """A machine in a line."""
    cpu = machine.cpu
    parts = [machine.name, cpu.model or cpu.architecture, f"{cpu.usable} cores", *(gpu.model for gpu in machine.gpu)]
    return ", ".join(part for part in parts if part)


def answers(machines: list[MachineResults], deciding: Deciding) -> list[tuple[Answer, list[Run]]]:
    """For each pair of machines, framework and arithmetic an answer, and the runs that it rests on."""
    answered = []
    for a, b in combinations(machines, 2):
        runs = [run for one in (a, b) for content in one.results for run in content.runs.values()]
        kinds = dict.fromkeys((run.task, run.numerics) for run in runs)
        answered += [_answer(a, b, task, numerics, deciding) for task, numerics in kinds]
    return answered


def _answer(
    a: MachineResults, b: MachineResults, task: str, numerics: str, deciding: Deciding
) -> tuple[Answer, list[Run]]:
    """The answer from runs that both machines made with one configuration; others are not compared."""
    ours, theirs = (one.runs.get((task, numerics), {}) for one in (a, b))
    compared, refused = [], []
    for name in [name for name in ours if name in theirs]:
        pairs = list(product(ours[name], theirs[name]))
        obstacles = [_obstacle(a, x, b, y, deciding) for x, y in pairs]
        if None in obstacles:
            compared.append(pairs[obstacles.index(None)])
        else:
            refused.append(f"{pairs[0][0].label}: {obstacles[0]}")
    compared.sort(key=lambda pair: pair[0].fingerprint == pair[1].fingerprint)  # what differs comes first
    equal = sum(x.fingerprint == y.fingerprint for x, y in compared)
    word: AnswerWord = NOT_ASKED
    if compared:
        word = SAME if equal == len(compared) else DIFFERS
    promise: Promise = SAME if _portable(task, numerics, compared) else None
    runs = [
        structs.replace(run, label=f"{machine.name}: {run.label}")
        for pair in compared
        for machine, run in zip((a, b), pair, strict=True)
    ]
    answer = Answer(
        says=f"{equal} of {len(compared)} runs are the same on both",
        question=QUESTION,
        title=f"Another machine: {a.name} and {b.name}",
        framework=task,
        numerics=numerics,
        promise=promise,
        answer=word,
        kept=kept(promise, word),
        control=False,
        evidence="fingerprint",
        reason="; ".join(refused) or (None if compared else "the two machines have no run in common"),
        runs=[run.label for run in runs],
        difference=_difference(*compared[0]) if word == DIFFERS else None,
    )
    return answer, runs


def _portable(task: str, numerics: str, compared: list[tuple[Run, Run]]) -> bool:
    """True if the same bits are promised: for a command, if both runs of each pair had portable numerics."""
    if task != COMMAND:
        return numerics == "portable"
    return bool(compared) and all(run.has_portable_numerics for pair in compared for run in pair)


def _obstacle(a: MachineResults, x: Run, b: MachineResults, y: Run, deciding: Deciding) -> str | None:
    """The reason that two runs cannot be compared, or None."""
    for machine, run in ((a, x), (b, y)):
        if run.status != DONE:
            return f"{run.status} on {machine.name} ({run.error})"
        if run.experiment is None:
            return f"{machine.name} did not record its configuration"
        if run.fingerprint is None:
            return f"not observed on {machine.name}"
    if x.of_command:
        return None if x.scripts == y.scripts else "the files that the command names are not the same"
    assert x.trained and y.trained
    ours, theirs = deciding(x.trained, x.steps), deciding(y.trained, y.steps)
    other = [key for key in sorted(ours.keys() | theirs.keys()) if ours.get(key) != theirs.get(key)]
    return ", ".join(f"{key}: {ours.get(key)} and {theirs.get(key)}" for key in other) or None


def _difference(x: Run, y: Run) -> FirstDifference | None:
    """The first loss that differs. Weights are not carried over, so no tensor is named.

    Of a command no loss is known: then only the facts that differ are known.
    """
    theirs = dict(zip(y.loss_steps, y.losses, strict=True))
    losses = zip(x.loss_steps, x.losses, strict=True)
    pairs = [(step, loss, theirs[step]) for step, loss in losses if step in theirs]
    first = next((index for index, (_, a, b) in enumerate(pairs) if a != b), None)
    ours, others = (run.experiment or {} for run in (x, y))
    causes = facts.causes(ours.get("facts", ours), others.get("facts", others))
    difference = FirstDifference(causes=[Cause(**asdict(cause)) for cause in causes])
    if first is None:
        return difference if x.of_command else None
    difference.step = pairs[first][0]
    difference.last_equal_step = pairs[first - 1][0] if first else None
    difference.growth = [
        GrowthPoint(step, abs(a - b) / abs(a) if a else abs(b)) for step, a, b in pairs[max(first - 1, 0) :]
    ]
    return difference
