"""Two records as a whole: their files, their arithmetic."""

from repro.compare.difference import Difference
from repro.compare.reasons.case import GUESS, HASHES, Rule, rule
from repro.compare.reasons.counters import files_of_a_callback
from repro.record.record import Record


@rule(GUESS, "give both runs the same options of `repro portable`")
def other_numerics(a: Record, b: Record) -> str | None:
    """Two records have another arithmetic: then that is the likely reason, wherever it shows first."""
    ours, theirs = (one.facts.get("portable_numerics") for one in (a, b))
    if ours == theirs:
        return None
    which = "have different options in the two" if ours and theirs else "are in only one of the two"
    return f"portable numerics {which}"


@rule(HASHES, "let it depend on nothing that no step shows, such as a generator without a seed")
def metrics(difference: Difference) -> str | None:
    """A metric differs, though no step does, or none was seen."""
    if difference.measured is None:
        return None
    if difference.equal_before is None:
        return f"a metric differs: {difference.measured}; no step was seen, so where that begins is unknown"
    return f"a metric differs, though every weight that was hashed is equal: {difference.measured}"


@rule(HASHES, "write the weights with --output, or hand them to repro.watch")
def files_without_steps(difference: Difference) -> str | None:
    """Only output files were seen, and they differ."""
    if difference.equal_before is not None:
        return None
    inside = difference.inside or "the files differ"
    return f"{inside}, and no step was seen, so where that begins is unknown"


@rule(HASHES, "leave the time, the path or the id out of the file, or name other files with --output")
def files_of_times(difference: Difference) -> str | None:
    """Output files differ in times, paths, ids or the order of bytes alone, and every weight that was hashed is equal."""
    return f"{difference.inside}, and no array differs" if difference.untrained and difference.inside else None


@rule(GUESS, "leave the time, the path and what is drawn without a seed out of the file")
def files_alone(difference: Difference) -> str | None:
    """Output files differ, though every weight that was hashed is equal."""
    if difference.inside:
        return f"{difference.inside}, though every weight that was hashed is equal: it may be what no step shows, such as an average of the weights or what comes after the last step, or a random number"
    return (
        "the files differ, though every weight that was hashed is equal: they may hold a time, a random number, a path, an option of the command, "
        "or what no step shows, such as an average of the weights or what comes after the last step"
    )


RULES: tuple[Rule, ...] = (metrics, files_without_steps, files_of_times, files_of_a_callback, files_alone)
