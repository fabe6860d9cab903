"""Why records that are equal are not called the same.

A step that was not seen whole may hold the difference. Nor does a run say anything about the observer that never loaded it.
"""

from repro.record.record import Record
from repro.text import MOST_NAMES

NOT_LOADED = "the observer was not loaded: no Python process of the command started with it, as where PYTHONPATH is set anew, with python -I, -E or -S, or where no Python runs"


def unseen(*records: Record) -> str | None:
    """What was not seen whole in any of them, in full; None where all was."""
    texts = list(dict.fromkeys(text for record in records for text in record.unseen))
    if not texts:
        return None
    more = f"; and {len(texts) - MOST_NAMES} more, see record.json" if len(texts) > MOST_NAMES else ""
    return f"not every step was seen whole: {'; '.join(texts[:MOST_NAMES])}{more}"


def not_loaded(record: Record) -> str | None:
    """That the observer was not loaded; None where it was, or an older version did not say."""
    return NOT_LOADED if record.content.loaded is False else None
