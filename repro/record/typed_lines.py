"""A line that the observer wrote: parsed, checked and typed."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from repro.files import parsed
from repro.structs import Flaw, Hash, Integer, Number, Struct, converted

LAST = 2**53  # the highest number of a step


class Samples(Struct):
    """A batch that a loader of PyTorch handed out."""

    epoch: Integer
    """The number of the pass through any loader's data, in the order in which they began."""
    data: Integer
    """The number of the data set."""
    sampler: str
    replacement: bool
    """True if the sampler draws with replacement."""
    stream: bool
    """True if the data set is iterable, and has no indices."""
    workers: Integer
    size: Integer | None
    """The length of the data set."""
    indices: list[Integer] | None
    rows: list[str] | None
    """A hash of each sample."""
    drew: list[str]
    """The generators whose state changed while it was fetched."""


class Step(Struct):
    """A line of the kind `step`."""

    step: Annotated[int, Meta(ge=0, le=LAST)]
    hashes: dict[str, dict[str, Hash]]
    scalars: dict[str, Annotated[str, Meta(max_length=40)]] = msgspec.field(default_factory=dict)
    """Numbers that the step depends on, as text. Older versions wrote none."""
    shapes: dict[str, Annotated[str, Meta(max_length=400)]] = msgspec.field(default_factory=dict)
    """Shapes of the batches' parts, as 32x10."""
    samples: dict[str, Samples] = msgspec.field(default_factory=dict)
    """Samples by the number of their batch."""
    zero: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Names of arrays of zeros, by channel."""
    nan: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Names of arrays that hold a NaN, by channel."""
    bfloat16: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Names of float32 arrays that hold no number which bfloat16 has not, by channel."""
    float16: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Names of float32 arrays whose numbers have at most float16's 11 bits, whatever their range, by channel."""
    shared: list[str] = msgspec.field(default_factory=list)
    """Groups of ranks that gathered the tensors which they share, as `0,1`."""
    time: Number | UnsetType = UNSET
    """Seconds since 1970."""


class Note(Struct):
    """A line of the kind `note`."""

    text: str
    unseen: Annotated[int, Meta(ge=0, le=LAST)] | UnsetType = UNSET
    """The first step that was not fully observed."""


class About(Struct):
    """A line of the kind `process`: the process in its own words, as far as it says anything."""

    pid: int | None = None
    parent: int | None = None
    forked: bool = False
    argv: list[str] | None = None
    python: str | None = None
    frameworks: dict[str, str] = msgspec.field(default_factory=dict)
    threads: int | None = None


class End(Struct):
    """A line of the kind `end`."""

    seconds: Number
    """The seconds that the observer took."""


class Logged(Struct):
    """A line of the kind `metric`: a number that the program handed to a library that logs."""

    source: str
    """The library."""
    name: str
    value: Annotated[str, Meta(max_length=40)]
    """The number, as text that holds all its bits."""
    step: Integer | None = None
    unit: str = "step"
    """The unit in which `step` counts: step, epoch."""


class Operation(Struct):
    """A line of the kind `operation`, of a step that is looked into."""

    step: int
    number: int
    """The number within its step, from 1."""
    name: str
    """PyTorch's name of the operation: `aten.mm.default`."""
    inputs: list[str]
    """The hashes of what it read; not of what it only overwrites."""
    outputs: list[str]
    """The hashes of what it returned or wrote to, where that has values."""
    in_place: bool
    view: bool
    """True if it shows other memory in another way, and reads nothing."""
    read_at: list[int]
    """Memory addresses of the tensors that it reads."""
    written_at: list[int]
    """Memory addresses of the tensors that it returns or writes."""
    module: str | None
    line: str | None
    """FILE:LINE of the program."""
    backward: bool

    @property
    def place(self) -> str:
        """The place of the call in the program, as far as it is known."""
        within = "in the backward pass" if self.backward else ""
        if self.module:
            within = f"{within} of {self.module}" if within else f"in {self.module}"
        return f"{within} ({self.line})" if self.line else within


Codes = dict[str, Hash]
"""The hash of each array by its path; "" where there is only one."""


class Call(Struct):
    """A line of the kind `call`: the call of a module in the forward pass of a step that --modules names."""

    step: Integer
    number: Integer
    """The order in which the calls of the step began, from 1."""
    module: str
    """The path from the root, as the framework names it; "" of the root itself."""
    type: str
    """The name of its class; `loss` of the loss of the step, which has outputs alone."""
    settings: dict[str, Annotated[str, Meta(max_length=400)]] = msgspec.field(default_factory=dict)
    training: bool | None = None
    inputs: Codes = msgspec.field(default_factory=dict)
    outputs: Codes = msgspec.field(default_factory=dict)
    weights: Codes = msgspec.field(default_factory=dict)
    """Its own trained arrays, without those of the modules in it."""
    buffers: Codes = msgspec.field(default_factory=dict)
    """Its own other state, as before the call."""
    exact: Codes = msgspec.field(default_factory=dict)
    """The outputs of the same call, where the whole model computes in float64."""


class Backward(Struct):
    """A line of the kind `backward`: the gradients of such a step, before the program changes them."""

    step: Integer
    gradients: Codes
    exact: Codes = msgspec.field(default_factory=dict)


Line = Step | Note | About | End | Logged | Operation | Call | Backward
KINDS: dict[str, type[Line]] = {
    "step": Step,
    "note": Note,
    "process": About,
    "end": End,
    "metric": Logged,
    "operation": Operation,
    "call": Call,
    "backward": Backward,
}
INFORMATIVE = (About, End)
"""Lines of a process about itself; without them its steps are as good."""


def read_line(text: bytes) -> Line | None:
    """A line of a process' file, checked and typed; None where it says nothing of use. Flaw where it cannot be believed."""
    try:
        content = parsed(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Flaw("it is not a JSON object")
    kind = KINDS.get(str(content.get("kind")))
    try:
        return converted(content, kind) if kind else None
    except Flaw:
        if kind in INFORMATIVE:
            return None
        raise
