"""The page of `compare --port`: two columns, layer beside layer. It loads nothing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from repro import __version__
from repro.errors import UsageError
from repro.files import write_atomically
from repro.port.agreement import ROUNDING, Apart
from repro.port.causes import RULES
from repro.port.forward import Layer
from repro.port.port import Port
from repro.port.side import Called
from repro.report.page import templates
from repro.report.port import VERDICTS, verdict

WIDEST = 5.0
"""The width of a bar of all digits, in rem."""


@dataclass
class Row:
    """A layer of both sides, or the modules between two layers."""

    layer: Layer | None = None
    gradient: Apart | None = None
    first: bool = False
    """True where both sides part."""
    ours: list[str] = field(default_factory=list)
    theirs: list[str] = field(default_factory=list)


def write(port: Port, path: Path) -> None:
    """Writes the page. UsageError where that is not possible."""
    environment = templates()
    environment.filters |= {"digits": digits}
    made = environment.get_template("port.html").render(
        port=port,
        title="Is the port the same?",
        verdict=verdict(port),
        remedy=next((f"Remedy: {rule.remedy}." for rule in RULES if port.why and rule.name == port.why.rule), ""),
        words=VERDICTS,
        rows=list(rows(port)),
        version=__version__,
    )
    try:
        write_atomically(path, made.encode())
    except OSError as error:
        raise UsageError(f"compare: --page {path}: {error.strerror}; name a file in a folder that exists") from None


def rows(port: Port) -> Iterator[Row]:
    """The layers in A's order, and what lies between them."""
    gradients = next((quantity.apart for quantity in port.quantities if quantity.name == "gradients"), {})
    parts = False
    last = [0, 0]
    for layer in port.layers:
        between = [
            _between(side.calls, low, call.number)
            for side, low, call in zip((port.a, port.b), last, (layer.a, layer.b), strict=True)
        ]
        if any(between):
            yield Row(ours=between[0], theirs=between[1])
        last = [layer.a.number, layer.b.number]
        first = not parts and port.place is not None and layer in (port.place.within, port.place.after)
        parts = parts or first
        names = [match.names[0] for match in port.matching.matches if {*match.a} & {*layer.a.weights.values()}]
        worst = max((gradients[name] for name in names if name in gradients), key=_excess, default=None)
        yield Row(layer, worst, first)


def _between(calls: list[Called], low: int, high: int) -> list[str]:
    """The modules without weights and parts that were called between two layers."""
    passed = [call for call in calls if low < call.number < high and not call.weights]
    return [call.label for call in passed if call.name and not any(call.holds(other) for other in calls)]


def _excess(apart: Apart) -> float:
    return apart.distance / apart.bound if apart.bound else math.inf if apart.distance else 0.0


def digits(apart: Apart) -> float:
    """The width of a bar: of as many decimal digits as agree, of those of float32."""
    if apart.same or not apart.relative:
        return WIDEST
    share = math.log10(apart.relative) / math.log10(2 * ROUNDING) if math.isfinite(apart.relative) else 0.0
    return round(WIDEST * min(max(share, 0.04), 1.0), 2)
