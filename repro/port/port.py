"""The comparison of two records of different frameworks: what agrees, and the first that does not."""

from dataclasses import dataclass, replace
from pathlib import Path

from repro.compare.reasons.case import Reason
from repro.errors import UsageError
from repro.files import read
from repro.port.causes import reason
from repro.port.causes.initial import drawn_anew
from repro.port.forward import Layer, Place
from repro.port.matching import Matcher, Matching
from repro.port.quantities import Checks, Quantity
from repro.port.side import Side
from repro.record.record import Record

LARGEST_FILE = 1 << 20
DRAWN = drawn_anew.name


@dataclass
class Port:
    """Two sides of a port, and how far they agree."""

    a: Side
    b: Side
    matching: Matching
    quantities: list[Quantity]
    layers: list[Layer]
    place: Place | None = None
    """Where the forward passes part, if they do."""
    why: Reason | None = None

    @property
    def first(self) -> Quantity | None:
        """The first quantity that differs."""
        return next((quantity for quantity in self.quantities if quantity.verdict == "differs"), None)

    @property
    def unseen(self) -> str | None:
        """The reason not to say that two sides without a difference agree."""
        if self.matching.ambiguous:
            return "not all weights were matched"
        weights = self.quantities[-2] if len(self.quantities) > 2 else None
        if weights is not None and weights.verdict == "same bits":
            return None  # whatever came before it
        unknown = [one for one in self.quantities if one.verdict == "unknown" and one.name in NEEDED]
        return f"the {unknown[0].name} are not compared: {unknown[0].text}" if unknown else None


NEEDED = ("initial weights", "weights of step 2")
"""What has to be compared before two sides are said to agree."""


def compare(a: Record, b: Record, pairs: Path | None = None) -> Port:
    """Compares two records as the sides of a port.

    `pairs`: a file that says which weights belong together, see `read_pairs`. UsageError where a record holds too little.
    """
    ours, theirs = Side(a, "A"), Side(b, "B")
    shared = {*ours.process.of("weights")} & {*theirs.process.of("weights")}
    if shared and not (ours.initial and theirs.initial):
        for side in (ours, theirs):  # those after one step have the same values, if the sides agree
            side.weights = side.after(min(shared)) or side.weights
    matching = Matcher(ours, theirs, read_pairs(pairs, ours, theirs) if pairs else {}).match()
    if not matching.matches and not matching.ambiguous:
        raise UsageError(
            f"compare: no weight of {a.path} can be one of {b.path} by its size: {_sizes(ours)} and {_sizes(theirs)}; "
            "name two records of one model"
        )
    checks = Checks(ours, theirs, matching)
    quantities = list(checks.all())
    port = Port(ours, theirs, matching, quantities, checks.forward.layers, checks.case.place)
    if port.first:
        checks.case.quantity, checks.case.names = port.first.name, port.first.names
        port.why = reason(checks.case)
        if port.why and port.why.rule == DRAWN:
            # Other draws are no fault, and all that comes after them differs.
            port.quantities = [*quantities[:1], replace(port.first, verdict="unknown", text=port.why.text)]
            port.layers, port.place, port.why = [], None, None
    return port


def read_pairs(path: Path, a: Side, b: Side) -> dict[str, str]:
    """Names of weights of A and of B, from lines `NAME_OF_A = NAME_OF_B`; `#` begins a comment.

    UsageError where the file cannot be read, a line is another one, or a name is not among the weights.
    """
    try:
        lines = read(path, LARGEST_FILE).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"compare: {path}: {getattr(error, 'strerror', None) or 'no text'}; name a file of pairs"
        ) from None
    pairs = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        ours, equals, theirs = (part.strip() for part in text.partition("="))
        if not text:
            continue
        for side, name in ((a, ours), (b, theirs)):
            if not equals or name not in side.weights:
                said = f"`{name}` is no weight of {side.letter}" if equals else f"`{text}` is no pair"
                raise UsageError(
                    f"compare: {path}, line {number}: {said}; write NAME_OF_A = NAME_OF_B, as {_example(a, b)}"
                )
        if a.weights[ours].size != b.weights[theirs].size:
            shapes = f"{a.weights[ours].shape} and {b.weights[theirs].shape}"
            raise UsageError(f"compare: {path}, line {number}: their sizes differ, {shapes}; pair weights of one size")
        pairs[ours] = theirs
    return pairs


def _example(a: Side, b: Side) -> str:
    return f"{next(iter(a.weights))} = {next(iter(b.weights))}"


def _sizes(side: Side) -> str:
    return f"{len(side.weights)} weights with {sum(array.size for array in side.weights.values()):,} numbers"
