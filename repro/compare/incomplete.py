"""Reasons not to call equal records the same.

A step that was not fully observed may hide the difference. A run that did not load the observer says nothing about it.
"""

from repro.record.record import Record
from repro.text import MOST_NAMES

NOT_LOADED = "the observer was not loaded: no Python process of the command started with it, as where PYTHONPATH is set anew, with python -I, -E or -S, or where no Python runs"


def unseen(*records: Record) -> str | None:
    """Describes what was not fully observed in any of the records; None if everything was."""
    texts = list(dict.fromkeys(text for record in records for text in record.unseen))
    if not texts:
        return None
    more = f"; and {len(texts) - MOST_NAMES} more, see record.json" if len(texts) > MOST_NAMES else ""
    return f"not every step was fully observed: {'; '.join(texts[:MOST_NAMES])}{more}"


def not_loaded(record: Record) -> str | None:
    """Says that the observer was not loaded; None if it was, or an older version did not record that."""
    return NOT_LOADED if record.content.loaded is False else None
