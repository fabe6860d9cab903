"""Line charts as inline SVG.

Points become the ticks and paths that the page's template draws. Drawn by hand, not by a plotting library: so the lines take the page's colours, in light, dark and print, the labels are
text, a chart is as small as its data, and the same points give the same bytes.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

WIDTH, HEIGHT = 400, 240  # in the units of the labels' 12; small enough for a phone, where the picture shrinks
LEFT, RIGHT, TOP, BOTTOM = 52, 382, 10, 202
FEW = 12  # points of a line up to which they are marked: a line of one point would show nothing
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Place = Callable[[float], float]


@dataclass
class Scale:
    """An axis: where a value lies between its two ends, 0 to 1, and the values that are written at it."""

    place: Place
    ticks: list[tuple[float, str]]


@dataclass
class Line:
    """A name, which the template knows a colour for, and points (x, y)."""

    name: str
    points: list[tuple[float, float]]


@dataclass
class Path:
    """A line as it is drawn."""

    name: str
    path: str
    marks: list[tuple[float, float]]
    """The points, where they are few."""


@dataclass
class Chart:
    """A picture: ticks with their places, and lines."""

    title: str
    x_label: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[Path]


def linear(values: Iterable[float]) -> Scale:
    """A scale over values, to the next round numbers."""
    low, high = _ends(values)
    step = 10 ** math.floor(math.log10((high - low) / 2))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * step) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    start, length = first * step, max(last - first, 1) * step
    ticks = [(number * step, f"{number * step:.6g}") for number in range(first, last + 1)]
    return Scale(lambda value: (value - start) / length, ticks)


def _ends(values: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest value, moved apart where they are as good as one."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-9):
        return low, high
    margin = max(abs(high) / 10, 1e-3)
    return low - margin, high + margin


def logarithmic(values: Iterable[float]) -> Scale:
    """A scale by powers of ten over the positive values; all others lie below the lowest, at a tick of their own: 0."""
    exponents = [math.log10(value) for value in values if value > 0] or [0.0]
    low, high = math.floor(min(exponents)) - 1, math.ceil(max(exponents))
    high = max(high, low + 2)
    every = math.ceil((high - low) / 6)
    powers = [(10.0**power, "10" + str(power).translate(SUPERSCRIPTS)) for power in range(high, low, -every)]

    def place(value: float) -> float:
        return (math.log10(value) - low) / (high - low) if value > 0 else 0.0

    return Scale(place, [(0.0, "0"), *reversed(powers)])


def doubling(values: Iterable[float]) -> Scale:
    """A scale on which a value twice as large always lies as much further on; a tick at each of the positive values."""
    distinct = sorted(set(values))
    low, high = _ends(map(math.log2, distinct))
    return Scale(lambda value: (math.log2(value) - low) / (high - low), [(value, f"{value:g}") for value in distinct])


def chart(title: str, lines: list[Line], y_scale: Scale, x_scale: Scale | None = None, x_label: str = "step") -> Chart:
    """A chart of lines with one point or more."""
    x_scale = x_scale or linear(x for line in lines for x, _ in line.points)

    def across(x: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * x_scale.place(x), 1)

    def down(y: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * y_scale.place(y), 1)

    def drawn(line: Line) -> Path:
        places = [(across(x), down(y)) for x, y in line.points]
        path = "M" + "L".join(f"{x} {y}" for x, y in places)
        return Path(line.name, path, places if len(places) <= FEW else [])

    x_ticks = [(across(value), label) for value, label in x_scale.ticks]
    y_ticks = [(down(value), label) for value, label in y_scale.ticks]
    return Chart(title, x_label, x_ticks, y_ticks, [drawn(line) for line in lines])
