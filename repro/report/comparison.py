"""The output of `compare` for two records."""

from repro.compare import files, metrics
from repro.compare.comparison import Comparison
from repro.compare.difference import without_effect
from repro.compare.metrics import resumed_note
from repro.compare.pairs import pairs
from repro.record.record import Record
from repro.text import counted, listed, printable, ranks, short

MOST = 8  # facts
LONGEST = 60  # characters of a fact


def told(comparison: Comparison) -> str:
    """The comparison in words, for a terminal."""
    a, b, difference, facts = comparison.a, comparison.b, comparison.found, comparison.facts
    losses = [f"  loss    {comparison.losses}"] if comparison.losses else []
    lines = [printable(f"A  {_described(a)}"), printable(f"B  {_described(b)}")]
    if comparison.layouts:
        ours, theirs = comparison.layouts
        lines.append(
            f"layouts: A has {ours}; B has {theirs}. Whole tensors are compared, and all ranks' samples together"
        )
    if difference is None:
        on = [f"B goes on after step {pair.offset} of A, " for pair in pairs(a, b) if pair.offset][:1]
        averaged = resumed_note(a, b) if on else ""
        equal = f"{''.join(on)}all that both records hold is equal ({_held(a, b)}){without_effect(a, b)}{averaged}"
        unseen = comparison.unseen
        lines.append(printable(f"inconclusive: {equal}, but {unseen}" if unseen else f"same: {equal}"))
        return "\n".join(
            [*lines, "  but losses that were reported differ, and no weight:", *losses] if losses else lines
        )
    where = f"at step {difference.step}" if difference.step is not None else "after the last step"
    if difference.pair and difference.pair.offset:
        where += f" of A, which is step {(difference.step or 0) - difference.pair.offset} of B, resumed after {difference.pair.offset}"
    if difference.measured and difference.equal_before is None:
        where = "without a step"
    since = f"; equal until step {difference.equal_before}" if difference.equal_before is not None else ""
    process = ranks(difference.ranks) if difference.ranks else difference.among
    among = f", in {process}" if process else ""
    lines.append(f"differs: first seen {where}{among}, in the {difference.channel}{since}")
    lines += [f"  names   {listed(difference.names)}"] if difference.names else []
    lines += [f"  key     {difference.inside}"] if difference.inside else []
    lines += [f"  by      {comparison.far}"] if comparison.far else []
    lines += [f"  growth  {', '.join(map(str, comparison.growth))}"] if len(comparison.growth) > 1 else []
    lines += losses
    lines += [f"  begins  {comparison.begins}"] if comparison.begins else []
    lines += [f"  why     {comparison.why}"] if comparison.why else []
    lines.append("  recorded facts that differ, most likely cause first:" if facts else "  no recorded fact differs")
    lines += [f"    {fact.fact}: {_brief(fact.a)} and {_brief(fact.b)} ({fact.why})" for fact in facts[:MOST]]
    lines += [f"    and {len(facts) - MOST} more"] if len(facts) > MOST else []
    return "\n".join(printable(line) for line in lines)


def _held(a: Record, b: Record) -> str:
    outputs = files.described(a, b, any(pair.offset for pair in pairs(a, b)))
    steps = [counted(min(a.steps, b.steps), "step")] if a.steps else []
    values = metrics.said(metrics.compared(a, b))
    return ", ".join([*steps, *([outputs] if outputs else []), *values])


def _described(record: Record) -> str:
    fingerprint, said = record.content.fingerprint, metrics.said(record.metrics)
    end = (
        f"{counted(record.steps, 'step')}, {short(fingerprint)}"
        if fingerprint
        else said[0]
        if said
        else "nothing observed"
    )
    code = record.content.exit_code
    return f"{record.path}: {end}" + (f", ended with code {code}" if code else "")


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
