"""Conclusions from samples: rows, ratios and warnings."""

import statistics
from collections.abc import Iterable, Iterator

from msgspec.structs import asdict, astuple, replace

from repro.trainers.benchmark import intervals, roofline
from repro.trainers.benchmark.cells import REPEAT_BITS
from repro.trainers.benchmark.results import (
    Benchmark,
    Cell,
    DoneSample,
    DoneTarget,
    Ratio,
    RatioKind,
    Row,
    Sample,
    Startup,
    TimeToTarget,
)

# The numerics above and below the line of each ratio.
RATIOS: dict[RatioKind, tuple[str, str]] = {
    "determinism": ("deterministic", "fast"),
    "portability": ("portable", "deterministic"),
    "tutorial": ("tutorial", "deterministic"),
    "tuned": ("tuned", "deterministic"),
}
TITLES: dict[RatioKind, str] = {
    "determinism": "Price of determinism: deterministic / fast",
    "portability": "Price of portability: portable / deterministic",
    "tutorial": "Tutorial's loop / deterministic",
    "tuned": "Loop tuned by hand / deterministic",
}


def concluded(content: Benchmark) -> Benchmark:
    """The content with what follows from its samples: `rows`, `ratios`, `caches`, `warnings`, `disagreements`."""
    by_cell = {name: [sample for sample in content.samples if sample.cell == name] for name in content.cells}
    rows = [_row(name, samples, content) for name, samples in by_cell.items() if samples]
    caches = [sample.compile_cache for sample in content.samples if isinstance(sample, DoneSample)]
    return replace(
        content,
        rows=rows,
        ratios=list(_ratios(content)),
        caches=dict(sorted(variable for variables in caches for variable in variables.items())),
        warnings=list(_warnings(content, rows)),
        disagreements=list(_disagreements(rows)),
    )


def _row(name: str, samples: list[Sample], content: Benchmark) -> Row:
    cell = content.cells[name]
    done = [sample for sample in samples if isinstance(sample, DoneSample)]
    errors = [sample.error for sample in samples if not isinstance(sample, DoneSample)]
    seconds = intervals.summary([sample.seconds_per_epoch for sample in done]) if done else None
    startup = _startup([sample.startup for sample in done])
    fingerprints = list(dict.fromkeys(sample.fingerprint for sample in done))
    first_step = _median(sample.first_step for sample in done)
    bare_import = _median(content.imports.get(cell.framework, []))
    row = Row(
        cell=name,
        **asdict(cell),
        version=done[0].version if done else None,
        error=errors[0] if errors else None,
        seconds_per_epoch=seconds,
        images_per_second=cell.train_samples / seconds.median if seconds else None,
        resolution=intervals.resolution(seconds) if seconds else None,
        startup=startup,
        fingerprints=fingerprints,
        agree=len(fingerprints) == 1 if len(done) > 1 and cell.numerics in REPEAT_BITS else None,
        first_epoch=_median(sample.first_epoch for sample in done),
        first_step=first_step,
        joules_per_epoch=_median(sample.joules_per_epoch for sample in done),
        peak_memory=max((sample.peak_memory or 0 for sample in done), default=0) or None,
        gpu_memory=max((sample.gpu_memory or 0 for sample in done), default=0) or None,
        cold_start=first_step / (bare_import + startup.compile) if first_step and bare_import and startup else None,
        roofline=_roofline(cell, content),
        to_target=None,
    )
    row.to_target = _to_target(row, content)
    return row


def _startup(parts: list[Startup | None]) -> Startup | None:
    """The median of each part; None where any is missing."""
    known = [startup for startup in parts if startup]
    if not known or len(known) < len(parts):
        return None
    return Startup(*map(statistics.median, zip(*map(astuple, known), strict=True)))


def _median(values: Iterable[float | None]) -> float | None:
    """The median; None where there is none, or one is missing."""
    given = list(values)
    known = [value for value in given if value is not None]
    return float(statistics.median(known)) if known and len(known) == len(given) else None


def _roofline(cell: Cell, content: Benchmark) -> float | None:
    """Seconds that an epoch's products take at the machine's best rate, on the CPU; portable ones are of float64."""
    dtype = "float64" if cell.numerics == "portable" else "float32"
    measured = [one for one in content.rooflines if (one.threads, one.dtype) == (cell.threads, dtype)]
    if cell.device != "cpu" or not measured:
        return None
    fastest = max(rate for one in measured for rate in one.rates)
    return roofline.flops_per_image(content.settings.model) * cell.train_samples / fastest


def _to_target(row: Row, content: Benchmark) -> TimeToTarget | None:
    """Seconds from the command to the target, measured for one arithmetic of each framework.

    Estimated for others on the same batches, which learn alike: what it takes to start, and the epochs that the
    measured run needed, at this row's speed.
    """
    run, target = content.targets.get(row.framework), content.settings.target
    if not isinstance(run, DoneTarget) or target is None or not row.startup:
        return None
    if any(getattr(run, key) != getattr(row, key) for key in ("batch_size", "device", "threads", "train_samples")):
        return None
    reached = [epoch for epoch in run.epochs if epoch.test_accuracy >= target]
    measured = run.numerics == row.numerics
    if not reached:
        return TimeToTarget(None, measured)
    if measured:
        return TimeToTarget(reached[0].end, True)
    if row.first_step is None or row.seconds_per_epoch is None:
        return None
    return TimeToTarget(
        row.first_step + reached[0].epoch * (row.seconds_per_epoch.median + run.evaluation), measured=False
    )


def _ratios(content: Benchmark) -> Iterator[Ratio]:
    """Ratios of samples of two cells taken in the same rounds, for each pair that differs in its numerics alone."""
    for kind, (above, below) in RATIOS.items():
        for name, cell in content.cells.items():
            if cell.numerics != below:
                continue
            other = replace(cell, numerics=above).name
            ratios = intervals.ratios(content.times(other), content.times(name))
            if ratios:
                setting = {key: value for key, value in asdict(cell).items() if key not in ("numerics", "steps")}
                yield Ratio(kind=kind, **setting, **asdict(intervals.summary(ratios)))


def _warnings(content: Benchmark, rows: list[Row]) -> Iterator[str]:
    """Warnings that the figures may be worth less than they look."""
    usable = content.machine.cpu.usable or 1
    if content.others_busy > 0.1 * usable:
        yield f"the machine is busy: other processes took {content.others_busy:.1f} of {usable} cores before the first sample"
    resolutions = {row.cell: row.resolution for row in rows if row.resolution is not None}
    if not resolutions:
        yield "one sample of each: nothing is known of the noise; raise minutes or rounds"
    noisy = [cell for cell, resolution in resolutions.items() if resolution > intervals.NOISY]
    if noisy:
        best, worst = min(resolutions, key=resolutions.__getitem__), max(noisy, key=resolutions.__getitem__)
        yield (
            f"the machine is noisy: in {len(noisy)} of {len(resolutions)} rows no difference below {intervals.NOISY:.0%} could have been seen; "
            f"the smallest one that could: {resolutions[best]:.1%} in {best}, {resolutions[worst]:.1%} in {worst}"
        )
    if content.interrupted:
        yield "interrupted: the rows hold what was measured until then"
    for row in rows:
        if row.error:
            yield f"{row.cell}: {row.error}"


def _disagreements(rows: list[Row]) -> Iterator[str]:
    """Fingerprints that should be one and are not: of a cell's samples, and of portable rows that train alike."""
    for row in rows:
        if row.agree is False:
            yield f"{row.cell}: {len(row.fingerprints)} fingerprints, where {row.numerics} promises one"
    alike: dict[tuple[int, int, int], list[Row]] = {}
    for row in rows:
        if row.numerics == "portable":
            alike.setdefault((row.batch_size, row.train_samples, row.steps), []).append(row)
    for together in alike.values():
        if len({fingerprint for row in together for fingerprint in row.fingerprints}) > 1:
            yield f"portable promises one fingerprint to all of {', '.join(row.cell for row in together)}"
