"""The facts of one training that are published with its weights: in a model card, and in a bill of materials."""

from collections.abc import Sequence
from typing import Any

from repro import __version__
from repro.errors import UsageError
from repro.report.levels import Levels

DISTRIBUTION = "repro-bits"


def one_training(trainings: Sequence[Levels], option: str) -> Levels:
    """The training that results are about. UsageError where there are several, or its weights have no fingerprint."""
    if len(trainings) != 1:
        number = len(trainings) or "no"
        raise UsageError(f"report: {option}: the results are about {number} trainings; name results of one")
    if trainings[0].fingerprint is None:
        raise UsageError(
            f"report: {option}: the training has no fingerprint, as nothing of it was seen; verify it with --output FILE"
        )
    return trainings[0]


def facts(training: Levels) -> dict[str, Any]:
    """What is published of a training, in the order that people read it; what is not known is left out."""
    known = {
        "fingerprint": training.fingerprint,
        "level": training.level,
        "level_name": training.name,
        "date": training.date,
        "commit": training.commit,
        "dirty": training.dirty if training.commit else None,
        "verified_with": f"{DISTRIBUTION} {__version__}",
        "versions": training.versions or None,
    }
    return {name: value for name, value in known.items() if value is not None}
