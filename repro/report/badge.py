"""The badge: a picture of the level that a training has reached, for a README.

It names the lowest level of the trainings that it is about. When, of what and with which versions stands in its description.
"""

from collections.abc import Sequence

from repro.report.levels import Levels
from repro.report.page import templates

REACHED, BROKEN, UNKNOWN = "#1a7f37", "#b42318", "#6e7781"  # white text on each has a contrast of 4.5 or more
NARROW, WIDE = "fijlrtI.,:·| ", "mwMW"
WIDTHS = {**dict.fromkeys(NARROW, 4.1), **dict.fromkeys(WIDE, 10.0)}
"""By character, its width in pixels, in Verdana of 11 pixels; all others are about 6.5 wide."""


def svg(trainings: Sequence[Levels]) -> str:
    """The badge of trainings: of several, the lowest level counts."""
    lowest = min(trainings, key=lambda one: (one.level, not one.differs), default=None)
    if lowest and lowest.level:
        label, message, colour = "reproducible", f"level {lowest.level} · {lowest.name}", REACHED
    else:
        label, message = "training", lowest.name if lowest else "not verified"
        colour = BROKEN if lowest and lowest.differs else UNKNOWN
    facts = "; ".join(_facts(lowest, len(trainings))) if lowest else "no question was answered"
    template = templates().get_template("badge.svg")
    return template.render(
        label=label, message=message, colour=colour, left=_width(label), right=_width(message), facts=facts
    )


def _facts(training: Levels, number: int) -> list[str]:
    """The facts that the level holds for."""
    facts = [training.says, training.date[:10], *training.frameworks]
    facts += [f"commit {training.commit}{' and changes' if training.dirty else ''}"] if training.commit else []
    facts += [f"fingerprint {training.fingerprint}"] if training.fingerprint else []
    facts += [f"the lowest level of {number} trainings"] if number > 1 else []
    return facts


def _width(text: str) -> int:
    """The width of a half of the badge in pixels, with six at each side."""
    return round(sum(WIDTHS.get(character, 6.5) for character in text)) + 12
