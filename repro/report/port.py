"""The output of `compare --port`."""

from repro.port.port import Port
from repro.port.quantities import Quantity
from repro.text import counted, listed, printable

VERDICTS = {"same bits": "the same bits", "agrees": "agrees", "differs": "differs", "unknown": "not compared"}
MOST = 12  # weights that are listed
WIDTH = max(map(len, ("initial weights", "forward pass", "weights of step 2")))


def told(port: Port) -> str:
    """The comparison in words, for a terminal."""
    lines = [
        f"{side.letter}  {side.record.path}: {side.framework}, {counted(len(side.weights), 'weight')}, {counted(len(side.calls), 'call')} of modules"
        for side in (port.a, port.b)
    ]
    lines += [verdict(port), *(f"  {quantity.name:<{WIDTH}}  {said(quantity)}" for quantity in port.quantities)]
    lines += [f"  why     {port.why}"] if port.why else ["  why     no rule knows it"] if port.first else []
    return "\n".join(printable(line) for line in [*lines, *_matched(port)])


def said(quantity: Quantity) -> str:
    return f"{VERDICTS[quantity.verdict]}: {quantity.text}"


def verdict(port: Port) -> str:
    """The answer in one line."""
    if port.first:
        where = f": {port.place.words}" if port.place and port.first.name == "forward pass" else ""
        return f"differs: first seen in the {port.first.name}{where}"
    if port.unseen:
        return f"inconclusive: all that was compared agrees, but {port.unseen}"
    return "agrees: the first step is the same on both sides, up to rounding that was measured"


def _matched(port: Port) -> list[str]:
    """The weights that were matched, and those of which a file of pairs must say it."""
    matching = port.matching
    lines = [f"  matched {counted(len(matching.matches), 'weight')}:"]
    lines += [f"    {match}" for match in matching.matches[:MOST]]
    lines += [f"    and {len(matching.matches) - MOST} more"] if len(matching.matches) > MOST else []
    for name, others in matching.ambiguous:
        lines.append(
            f"  ambiguous: {name} may be {listed(others)}; write it into a file as `{name} = {others[0]}`, and add --pairs FILE"
        )
    for letter, names in zip("AB", matching.alone, strict=True):
        lines += [f"  in {letter} alone: {listed(names)}"] if names else []
    return lines
