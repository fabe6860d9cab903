"""Disputes: two who each hold a record of one training find the first step that differs, by messages.

Each message opens a node of its sender's tree, or a step, and goes on from what the other one opened: log2 of the number of
steps messages, each of a few hundred bytes. What is opened must hash to what was opened before, up to the root, which a
receipt has signed: nobody can change his mind on the way.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from repro.compare.pairs import natural
from repro.errors import ReproError, UsageError
from repro.files import read_json
from repro.receipt import merkle
from repro.receipt.merkle import Range
from repro.record.lines import CHANNELS
from repro.record.record import Record
from repro.structs import Flaw, Hash, Integer, Struct, converted

SCHEMA = 1
LARGEST = 64 << 20
AGAIN = "ask for the message again"

Side = Literal["A", "B"]


class Opened(Struct):
    """A node of a side's tree, opened: the hashes of its two children."""

    side: Side
    first: Integer
    end: Integer
    children: Annotated[list[Hash], Meta(min_length=2, max_length=2)]

    @property
    def covered(self) -> Range:
        return self.first, self.end


class Step(Struct):
    """A step of a side: what its leaf commits to, as text."""

    side: Side
    number: Integer
    content: str


class Message(Struct):
    """All that was said so far; the last one who wrote is `by`."""

    schema: int
    by: Side
    leaves: Integer
    roots: dict[Side, Hash]
    opened: list[Opened] = msgspec.field(default_factory=list)
    steps: list[Step] = msgspec.field(default_factory=list)
    result: str | UnsetType = UNSET
    """The first difference, in words, once both steps were opened."""


def begin(record: Record) -> Message:
    """The first message, of A."""
    tree = Tree(merkle.leaves(record))
    message = Message(schema=SCHEMA, by="A", leaves=len(tree.leaves), roots={"A": tree.root})
    return _opening(message, record, tree, "A", tree.whole)


def answer(record: Record, message: Message, signed: str | None = None) -> Message:
    """The next message. `signed`: the root that the other side's receipt has signed.

    UsageError where there is nothing to answer, ReproError where what the other side opened does not fit.
    """
    side: Side = "B" if message.by == "A" else "A"
    tree = Tree(merkle.leaves(record))
    if message.result is not UNSET:
        raise UsageError(f"dispute: it is over: {message.result}")
    if message.leaves != len(tree.leaves):
        raise UsageError(
            f"dispute: the other record has {message.leaves - 1} steps, and yours {len(tree.leaves) - 1}: they cannot be of one training; compare them by `repro compare`"
        )
    if message.roots.get(side, tree.root) != tree.root:
        raise UsageError("dispute: this record is not the one that you have answered from before")
    _check(message, signed)
    message = msgspec.structs.replace(message, by=side, roots=message.roots | {side: tree.root})
    if tree.root == message.roots[_other(side)]:
        return msgspec.structs.replace(message, result="the two records hold the same steps")
    place = _first_differing(message, tree, side)
    message = _opening(message, record, tree, side, place)
    return _judged(message) if place[1] - place[0] == 1 else message


def _opening(message: Message, record: Record, tree: "Tree", side: Side, place: Range) -> Message:
    """The message with a node of a side opened, and those above it that lead there; or with a step."""
    path = [covered for covered in tree.path(place) if covered[1] - covered[0] > 1]
    known = {(one.side, one.covered) for one in message.opened}
    new = [tree.opened(side, covered) for covered in path if (side, covered) not in known]
    steps = list(message.steps)
    if place[1] - place[0] == 1:
        number = sorted({step for process in record.processes for step in process.steps})[place[0]]
        steps.append(Step(side=side, number=number, content=merkle.content(record, number).decode()))
    return msgspec.structs.replace(message, opened=[*message.opened, *new], steps=steps)


def _first_differing(message: Message, tree: "Tree", side: Side) -> Range:
    """The leaves of the first node that the other side has shown, has not opened, and that differs from ours."""
    theirs = {one.covered: one.children for one in message.opened if one.side != side}
    place = tree.whole
    while place in theirs:
        ours = tree.opened(side, place).children
        number = next((n for n in (0, 1) if ours[n] != theirs[place][n]), None)
        assert number is not None  # the hashes of the node differ
        place = merkle.children(place)[number]
    return place


def _check(message: Message, signed: str | None) -> None:
    """Raises ReproError where something that was opened does not hash to what it was shown as."""
    for side, root in message.roots.items():
        if signed is not None and side == message.by and root != signed:
            raise ReproError(f"dispute: the root of {side} is not the one that the receipt has signed; {AGAIN}")
        shown: dict[Range, str] = {(0, message.leaves): root}
        for one in (one for one in message.opened if one.side == side):
            both = b"".join(bytes.fromhex(child) for child in one.children)
            if one.end - one.first < 2 or shown.get(one.covered) != hashlib.sha256(merkle.NODE + both).hexdigest():
                raise ReproError(
                    f"dispute: what {side} opened of leaves {one.first} to {one.end - 1} is not what was shown of them before; {AGAIN}"
                )
            shown |= dict(zip(merkle.children(one.covered), one.children, strict=True))
        leaves = {digest: place for place, digest in shown.items() if place[1] - place[0] == 1}
        for step in (step for step in message.steps if step.side == side):
            if hashlib.sha256(merkle.LEAF + step.content.encode()).hexdigest() not in leaves:
                raise ReproError(
                    f"dispute: step {step.number} of {side} is not the leaf that was shown before; {AGAIN}"
                )


def _judged(message: Message) -> Message:
    """The message with its result, once both sides have opened the step."""
    steps = {step.side: step for step in message.steps}
    if len(steps) < 2:
        return message
    a, b = (json.loads(steps[side].content) for side in ("A", "B"))
    return msgspec.structs.replace(message, result=_difference(a, b))


def _difference(a: Any, b: Any) -> str:
    """The first channel in the order of cause, and the names in it, that differ between two steps."""
    number = a[0]
    if [label for label, _ in a[1]] != [label for label, _ in b[1]] or a[0] != b[0]:
        return f"step {number} was taken by other processes"
    for channel in CHANNELS:
        for (_, ours), (_, theirs) in zip(a[1], b[1], strict=True):
            both = ours.get(channel, {}), theirs.get(channel, {})
            names = sorted((n for n in both[0] | both[1] if both[0].get(n) != both[1].get(n)), key=natural)
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                return f"step {number} differs first, in the {channel}: `{names[0]}`{more}"
    return f"step {number} differs first"


@dataclass
class Tree:
    """The tree over the leaves of a record; nodes are hashed once."""

    leaves: list[bytes]
    nodes: dict[Range, bytes] = field(default_factory=dict)

    @property
    def whole(self) -> Range:
        return 0, len(self.leaves)

    @property
    def root(self) -> str:
        return self.node(self.whole).hex()

    def node(self, covered: Range) -> bytes:
        if covered not in self.nodes:
            self.nodes[covered] = merkle.node(self.leaves, covered)
        return self.nodes[covered]

    def opened(self, side: Side, covered: Range) -> Opened:
        children = [self.node(child).hex() for child in merkle.children(covered)]
        return Opened(side=side, first=covered[0], end=covered[1], children=children)

    def path(self, place: Range) -> list[Range]:
        """The nodes from the root to one."""
        path = [self.whole]
        while path[-1] != place:
            path.append(next(child for child in merkle.children(path[-1]) if child[0] <= place[0] < child[1]))
        return path


def read(path: Path) -> Message:
    """A message of the other side. UsageError where there is none, ReproError where it cannot be believed."""
    try:
        message = converted(read_json(path, LARGEST), Message)
    except FileNotFoundError:
        raise UsageError(f"dispute: {path} does not exist; name a message that `repro dispute` wrote") from None
    except OSError as error:
        raise ReproError(f"dispute: {path} cannot be read ({error.strerror})") from None
    except (Flaw, ValueError) as error:
        raise ReproError(f"dispute: {path} is no message of a dispute: {error}; {AGAIN}") from None
    if message.schema != SCHEMA or message.by not in message.roots or message.leaves < 1:
        raise ReproError(f"dispute: {path} is no message of a dispute that this version reads; {AGAIN}")
    return message


def _other(side: Side) -> Side:
    return "A" if side == "B" else "B"
