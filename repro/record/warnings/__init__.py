"""Warnings from a single record: reproducible, but suspicious.

A rule is a function of a record. It yields what was seen, in words, and does not judge it.

epochs  order and samples of the passes through the data
passes  these passes, as the lines of a process show them
ranks   batches and weights of several ranks
values  zeros, NaN and weights that stay
"""

from collections.abc import Callable, Iterator

from repro.record.record import Record
from repro.record.warnings import epochs, ranks, values
from repro.structs import Struct

Rule = Callable[[Record], Iterator[str]]

RULES: tuple[Rule, ...] = (
    epochs.epochs_in_one_order,
    epochs.augmentation_repeats,
    epochs.samples_twice_or_never,
    epochs.samples_of_each_worker,
    epochs.workers_with_equal_batches,
    ranks.ranks_with_equal_batches,
    ranks.samples_of_several_ranks,
    ranks.replicas_differ,
    values.zero_gradients,
    values.zero_weights,
    values.unchanged_weights,
    values.stuck_weights,
    values.not_a_number,
)


class RecordWarning(Struct):
    """A warning of something suspicious that was seen."""

    rule: str
    text: str


def warnings(record: Record) -> list[RecordWarning]:
    """All warnings that the rules give for a record."""
    return [RecordWarning(rule=rule.__name__, text=text) for rule in RULES for text in rule(record)]
