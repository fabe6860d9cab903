"""Runs as a timeline: steps, epochs, files, stops and the first difference.

Positions are percentages of the picture's width, so that text keeps its size on a phone.
"""

from dataclasses import dataclass, field

from repro.report import charts
from repro.report.contents import Lane
from repro.text import listed

ROW, TOP = 16, 22  # pixels: of a process, and above the first one
MOST = 20  # processes of a run
CLOSE = 60  # percent: right of it a label stands left of its mark


@dataclass
class Mark:
    """A place on a line, and what is there."""

    at: float
    text: str


@dataclass
class Bar:
    """A process, from the step that it goes on after to its last one."""

    start: float
    width: float
    y: int
    text: str
    epochs: list[Mark]
    files: list[Mark]
    stopped: Mark | None
    went_on: Mark | None


@dataclass
class DrawnLane:
    """A run."""

    label: str
    height: int
    bars: list[Bar] = field(default_factory=list)
    difference: Mark | None = None
    anchor: str = "start"


@dataclass
class Timeline:
    """Runs below one another, over the same steps."""

    ticks: list[tuple[float, str]]
    lanes: list[DrawnLane]


def timeline(lanes: list[Lane]) -> Timeline | None:
    """The picture of runs; None without a step."""
    last = max((part.last for lane in lanes for part in lane.parts), default=0)
    if last < 1:
        return None
    scale = charts.linear([0, last])

    def across(step: float) -> float:
        return round(1 + 98 * scale.place(step), 2)

    ticks = [(across(value), label) for value, label in scale.ticks if value == int(value)]
    return Timeline(ticks, [_drawn(lane, across) for lane in lanes])


def _drawn(lane: Lane, across: charts.Place) -> DrawnLane:
    drawn = DrawnLane(lane.label, TOP + ROW * min(len(lane.parts), MOST) + 2)
    for number, part in enumerate(lane.parts[:MOST]):
        stopped = number + 1 < len(lane.parts)
        files = [Mark(across(of.step), f"last written after step {of.step}: {listed(of.names)}") for of in part.files]
        if stopped and lane.parts[number + 1].after:
            files.append(_checkpoint(lane.parts[number + 1].after, across))
        begin = f"went on after step {part.after}, " if number else ""
        end = f"{'stopped' if stopped else 'ended'} after step {part.last}"
        drawn.bars.append(
            Bar(
                start=across(part.after),
                width=round(across(part.last) - across(part.after), 2),
                y=TOP + ROW * number,
                text=begin + end,
                epochs=[Mark(across(step - 1), f"an epoch begins with step {step}") for step in part.epochs],
                files=files,
                stopped=Mark(across(part.last), f"stopped after step {part.last}") if stopped else None,
                went_on=Mark(across(part.after), f"went on after step {part.after}") if number else None,
            )
        )
    if lane.step is not None:
        at = across(lane.step)
        drawn.difference = Mark(
            at, f"first difference: step {lane.step}" + (f", {lane.channel}" if lane.channel else "")
        )
        drawn.anchor = "end" if at > CLOSE else "start"
    return drawn


def _checkpoint(step: int, across: charts.Place) -> Mark:
    return Mark(across(step), f"the next process went on from the weights after step {step}")
