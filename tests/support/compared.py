"""Two records side by side."""

from repro.compare.difference import Difference, check_comparable, first_difference
from repro.record import record


def compared(a: record.Record, b: record.Record, goes_on: bool | None = None) -> Difference | None:
    check_comparable(a, b)
    return first_difference(a, b, goes_on)
