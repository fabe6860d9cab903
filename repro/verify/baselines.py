"""The two baseline runs: were they seen, and apart?

A command that writes to one place in each run may read what the run before it left.
"""

import os
from collections.abc import Set

from repro.compare import files, incomplete
from repro.errors import ReproError
from repro.text import MOST_NAMES, RUN, escaped
from repro.verify.judgment import record_of
from repro.verify.questions import REPEAT
from repro.verify.trial import Trial

OWN_FOLDER = f"Put {RUN} into the command, which stands for a folder of each run's own, as in --out={RUN}"


def check_observed(trial: Trial, first: Trial | None) -> None:
    """ReproError where the command fails without any change, or nothing of it is seen; `first` is the run before it."""
    if trial.error and trial.change == REPEAT:
        said = "".join(f"; {text}" for text in left(first))
        raise ReproError(f"verify: the command fails when it is run again: {trial.error}{said}; see {trial.folder}")
    if trial.error:
        raise ReproError(f"verify: the command fails as it stands: {trial.error}; see {trial.folder}")
    record = record_of(trial)
    if record.steps or record.outputs or record.metrics or (trial.change != REPEAT and record.written):
        return
    if trial.change == REPEAT and first and (not record.written or files.have_results(record_of(first), record)):
        return
    lost = incomplete.not_loaded(record)
    notes = "".join(f"; {note}" for note in [lost, *record.content.notes[:2]] if note)
    raise ReproError(
        f"verify: nothing in the command was observed: no step of an optimizer, no output and no metric; name what it writes with --output GLOB, or call repro.watch in a custom loop{notes}"
    )


def shared_files(baseline: Trial, repeat: Trial, went_on: bool) -> list[str]:
    """Warnings that two runs wrote to one place: the second may have read what the first had left."""
    shared = baseline.wrote & repeat.wrote
    if went_on or not shared:
        return left(baseline) if went_on else []
    return [
        f"both runs wrote to one place: {_places(shared)}; the second may have read what the first left. {OWN_FOLDER}"
    ]


def left(baseline: Trial | None) -> list[str]:
    """Warnings about files that the first run left, and the second may have read."""
    files = baseline.wrote if baseline else set()
    return [f"the first run left {_places(files)}, which the second may have read. {OWN_FOLDER}"] if files else []


def _places(files: Set[str]) -> str:
    """The first few files, as seen from the folder that the command is started in."""
    more = f" and {len(files) - MOST_NAMES} more" if len(files) > MOST_NAMES else ""
    return ", ".join(escaped(os.path.relpath(name)) for name in sorted(files)[:MOST_NAMES]) + more
