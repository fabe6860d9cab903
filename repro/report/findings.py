"""The content of report.json, built from the results of one machine or several."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import structs

from repro.compare.metrics import METRICS
from repro.frameworks import FRAMEWORKS
from repro.report.contents import (
    Block,
    BrokenPromise,
    Curves,
    Lane,
    MachineFacts,
    PromiseCounts,
    Report,
    RunOfCell,
    Section,
    Speed,
    TableCell,
    TableRow,
)
from repro.report.levels import BASELINES, Levels, levels
from repro.text import brief, counted, ranks, short
from repro.trainers.verify.recorded import deciding
from repro.verify import machines, results
from repro.verify.audits import Audit
from repro.verify.experiment import Framework
from repro.verify.machines import MachineResults
from repro.verify.questions import SAME, UNANSWERED
from repro.verify.results import COMMAND, DONE, Answer, FirstDifference, Results, Run

FRAMEWORK_TITLES = {name: framework.title for name, framework in FRAMEWORKS.items()} | {COMMAND: "Your command"}
TOGETHER = "all"  # the framework of a question that is asked of all of them together
MANY = 1_000_000  # units in the last place: from there on, nobody counts


def build(contents: list[Results], audits: Sequence[Audit] = ()) -> Report:
    """The report on results as results.read() returns them; a file given twice counts once, the newest comes first."""
    known = machines.distinct(machines.unique(contents))
    across = _blocks(machines.answers(known, deciding))
    sections = [_section(content, machine) for machine in known for content in machine.results]
    blocks: list[tuple[str | None, Block]] = [(None, block) for block in across]
    blocks += [(section.machine, block) for section in sections for block in section.blocks]
    facts = [MachineFacts(machine.name, machines.summary(machine.machine), _facts(machine)) for machine in known]
    reached = levels(contents, audits)
    return Report(results.KIND.schema, _verdict(blocks), across, sections, facts, levels=reached)


def _section(content: Results, machine: MachineResults) -> Section:
    baselines = _baselines(content)
    return Section(
        machine=machine.name,
        summary=machines.summary(machine.machine),
        created=content.created,
        seconds=content.seconds,
        seal=content.seal,
        settings=content.settings,
        blocks=_blocks((answer, [content.runs[name] for name in answer.runs]) for answer in content.answers),
        curves=[_curves(each, runs) for each, runs in baselines.items() if runs],
        speed=[_speed(each, run) for each, runs in baselines.items() for run in runs],
        lanes=_lanes(content),
        warnings=content.warnings or [],
    )


def _lanes(content: Results) -> list[Lane]:
    """The runs of a timeline, with the first difference of each."""
    runs = {name: (run, run.parts) for name, run in content.runs.items() if run.parts}
    shown = {name for name, (run, parts) in runs.items() if run.label in BASELINES or len(parts) > 1}
    lanes = {name: Lane(label=runs[name][0].label, parts=runs[name][1]) for name in shown}
    for answer in content.answers:
        first = answer.difference
        if first is not None and first.run in runs:
            run, parts = runs[first.run]
            lanes[first.run] = Lane(label=run.label, parts=parts, step=first.step, channel=first.channel or None)
    return [lanes[name] for name in content.runs if name in lanes]


# --- the tables -----------------------------------------------------------------------------------------------------


def _blocks(answered: Iterable[tuple[Answer, list[Run]]]) -> list[Block]:
    """A table for each arithmetic: a row for each question, its cells by framework."""
    blocks: dict[str, Block] = {}
    frameworks: dict[str, dict[str, None]] = {}
    rows: dict[tuple[object, ...], list[TableRow]] = {}
    times_asked = Counter[tuple[object, ...]]()
    for answer, runs in answered:
        block = blocks.setdefault(answer.numerics, Block(answer.numerics))
        frameworks.setdefault(answer.numerics, {}).setdefault(answer.framework)
        question = (answer.numerics, answer.question, answer.title, answer.control)
        number = times_asked[*question, answer.framework]  # what a framework is asked twice gets a second row
        times_asked[*question, answer.framework] += 1
        of_question = rows.setdefault(question, [])
        if number == len(of_question):
            of_question.append(TableRow(answer.question, answer.title, answer.control))
            block.rows.append(of_question[number])
        of_question[number].cells[answer.framework] = _cell(answer, runs)
    for block in blocks.values():
        block.frameworks = [name for name in frameworks[block.numerics] if name != TOGETHER]
    return list(blocks.values())


def _cell(answer: Answer, runs: list[Run]) -> TableCell:
    evidence = [run.evidence(answer.evidence) for run in runs]
    return TableCell(
        framework=answer.framework,
        answer=answer.answer,
        promise=answer.promise,
        kept=answer.kept,
        says=_says(answer, evidence),
        missing=answer.reason if answer.answer not in UNANSWERED else None,
        difference=answer.difference,
        runs=[
            RunOfCell(run.task, run.label, run.seconds, run.command, shown or run.error or "not observed")
            for run, shown in zip(runs, evidence, strict=True)
        ],
    )


def _says(answer: Answer, evidence: list[str | None]) -> str:
    """The evidence in one line."""
    if answer.answer in UNANSWERED:
        return answer.reason or "no reason was given"
    distinct = list(dict.fromkeys(evidence))
    if answer.answer == SAME:
        same = short(distinct[0] or "") if answer.evidence == "fingerprint" else "loss and accuracy to the last bit"
        return answer.says or f"{len(evidence)} runs, {same}"
    counted = answer.says or f"{len(evidence)} runs, {len(distinct)} different {answer.evidence}s"
    if answer.difference is None:
        return counted
    where = _where(answer.difference)
    return f"{counted}; {where}" if answer.says else where


def _where(first: FirstDifference) -> str:
    """The first difference, its size and its most likely cause."""
    if first.channel == METRICS:
        return f"first seen in the metric {first.tensor}"
    where = f"first seen at step {first.step}" if first.step is not None else "no step is known"
    if first.ranks:
        where += f" in {ranks(first.ranks)}"
    if first.tensor is not None:
        where += f" in {first.tensor}"
    if first.ulps is not None and first.ulps < MANY:
        where += f", {first.ulps:,} ulp"
    elif first.relative is not None:
        where += f", {first.relative:.2g} relative"
    if first.causes:
        cause = first.causes[0]
        where += f"; {cause.fact}: {brief(cause.a)} and {brief(cause.b)}"
    return where


def framework_name(framework: str) -> str:
    """The name that people know a framework by."""
    return FRAMEWORK_TITLES.get(framework, "all together" if framework == TOGETHER else framework)


def training_name(training: Levels) -> str:
    """The training that levels are about."""
    return f"{framework_name(training.framework)}, {training.numerics}"


def promised(cell: TableCell) -> str:
    """The promise in words and with a mark, so that no colour is needed; empty without an answer."""
    if cell.answer in UNANSWERED:
        return ""
    if cell.promise is None:
        return "nothing promised"
    return "✓ as promised" if cell.kept else f"✗ promised: {cell.promise}"


def verdict(report: Report) -> str:
    """The report in one sentence or two."""
    count = report.verdict
    broken, promises = len(count.broken), len(count.broken) + count.kept
    of_all = f"of {counted(promises, 'promise')}"
    first = f"{broken} {of_all} broken." if broken else f"{promises} {of_all} kept."
    first = first if promises else "No promise was put to the test."
    others = f"{counted(count.without_promise, 'answer')} without a promise"
    return f"{first} {others}, {counted(count.not_asked, 'question')} not answered."


def _verdict(blocks: list[tuple[str | None, Block]]) -> PromiseCounts:
    cells = [
        (machine, block.numerics, row.title, cell)
        for machine, block in blocks
        for row in block.rows
        for cell in row.cells.values()
    ]
    return PromiseCounts(
        kept=sum(cell.kept is True for *_, cell in cells),
        broken=[
            BrokenPromise(machine=machine, title=title, numerics=numerics, **structs.asdict(cell))
            for machine, numerics, title, cell in cells
            if cell.kept is False
        ],
        without_promise=sum(cell.kept is None and cell.answer not in UNANSWERED for *_, cell in cells),
        not_asked=sum(cell.answer in UNANSWERED for *_, cell in cells),
    )


# --- curves, speed, machines ----------------------------------------------------------------------------------------


def _baselines(content: Results) -> dict[str, list[Run]]:
    """The unchanged runs that were done, by arithmetic, in the usual order of frameworks."""
    baselines: dict[str, dict[str, Run]] = {run.numerics: {} for run in content.runs.values()}
    for run in content.runs.values():
        if run.status == DONE and run.label in BASELINES:
            baselines[run.numerics][run.task] = run
    return {
        numerics: sorted(runs.values(), key=lambda run: (*FRAMEWORK_TITLES, run.task).index(run.task))
        for numerics, runs in baselines.items()
    }


def _curves(numerics: str, runs: list[Run]) -> Curves:
    return Curves(
        numerics,
        loss={run.task: list(zip(run.loss_steps, run.losses, strict=True)) for run in runs},
        accuracy={
            run.task: [(row.step, row.test_accuracy) for row in run.metrics if row.test_accuracy is not None]
            for run in runs
        },
    )


def _speed(numerics: str, run: Run) -> Speed:
    trained = [row.train_seconds for row in run.metrics if row.train_seconds is not None]
    framework = run.trained.framework if run.trained else Framework()
    return Speed(
        numerics=numerics,
        framework=run.task,
        version=framework.version,
        device=framework.device_name or framework.device,
        threads=framework.threads,
        steps=run.steps,
        seconds_per_step=sum(trained) / run.steps if trained and run.steps > 0 else None,
        seconds=run.seconds,
        test_accuracy=run.metrics[-1].test_accuracy if run.metrics else None,
        fingerprint=run.fingerprint,
    )


def _facts(known: MachineResults) -> dict[str, str]:
    """A machine in words."""
    machine, cpu = known.machine, known.machine.cpu
    cores = {"cores": cpu.cores, "logical": cpu.logical, "usable": cpu.usable}
    facts = {
        "name": machine.name,
        "CPU": cpu.model or cpu.vendor,
        "architecture": cpu.architecture,
        "instruction set": cpu.instruction_set,
        "cores": ", ".join(f"{count} {name}" for name, count in cores.items() if count is not None),
        "GPU": "; ".join(f"{gpu.model}, driver {gpu.driver}" for gpu in machine.gpu) or "none",
        "system": machine.platform,
    }
    return {name: fact for name, fact in facts.items() if fact}
