"""Recurrent layers whose gates lie in another order."""

import numpy as np

from repro.port.causes.case import ARRAYS, FORWARD, Case, Rule, rule
from repro.port.matching import Match
from repro.port.side import Called

ORDERS = {
    ("PyTorch", "LSTM"): ("input", "forget", "cell", "output"),
    ("PyTorch", "GRU"): ("reset", "update", "new"),
    ("Keras", "LSTM"): ("input", "forget", "cell", "output"),
    ("Keras", "GRU"): ("update", "reset", "new"),
    ("JAX", "LSTM"): ("input", "cell", "forget", "output"),
}
"""The gates of one weight, in its blocks; JAX: Haiku's `LSTM`. Sources: the documentation of `torch.nn.LSTM` and `GRU`, Keras' and Haiku's code."""
PARTS = {"i": "input", "f": "forget", "g": "cell", "o": "output", "r": "reset", "z": "update", "n": "new"}
"""The last letter of Flax' names, such as `hf` and `iz`: for GRU's `in` and `hn`, the new state."""


@rule(
    ARRAYS,
    "PyTorch and Keras have the gates of an LSTM as input, forget, cell, output; of a GRU PyTorch has reset before update, Keras after it",
)
def order_of_gates(case: Case) -> str | None:
    """Equal values are the weights of one gate on one side, and of another gate on the other, by the libraries' orders."""
    place = case.place
    if case.quantity != FORWARD or place is None:
        return None
    for match in case.matching.matches:
        calls = case.sides[0].owner(match.a[0]), case.sides[1].owner(match.b[0])
        kinds = [_kind(call) for call in calls]
        if not kinds[0] or kinds[0] != kinds[1] or calls[0] is None or calls[1] is None:
            continue
        wrong = _wrong(match, case, kinds[0])
        if wrong:
            return f"the {wrong[0]} gate of `{match.names[0]}` has the values of the {wrong[1]} gate in B: the gates lie in another order"
    return None


def _kind(call: Called | None) -> str:
    """LSTM or GRU, by the name of its class."""
    return next((kind for kind in ("LSTM", "GRU") if call and kind in f"{call.kind} {call.name}".upper()), "")


def _wrong(match: Match, case: Case, kind: str) -> tuple[str, str] | None:
    """A gate of A, and the gate of B whose weights have its values, if that is another one."""
    gates = [_gates(case, side, names, kind) for side, names in ((0, match.a), (1, match.b))]
    if gates[0] is None or gates[1] is None:
        return None
    ours, theirs = gates[0], gates[1][match.layout.take.reshape(-1)]
    if match.summed:
        ours = ours[: theirs.size]
    for gate in dict.fromkeys(ours.tolist()):
        others = {*theirs[ours == gate].tolist()}
        if len(others) == 1 and gate not in others:
            return gate, others.pop()
    return None


def _gates(case: Case, side: int, names: tuple[str, ...], kind: str) -> np.ndarray | None:
    """The gate of each element of weights, one after another: str[n]; None where that is not known."""
    library = case.sides[side].framework.partition(" ")[0]
    order = ORDERS.get((library, kind))
    result = []
    for name in names:
        array = case.sides[side].weights[name]
        parts = name.replace("/", ".").split(".")
        letters = [part for part in parts if len(part) == 2 and part[0] in "ih" and part[1] in PARTS]
        if letters:
            result.append(np.full(array.size, PARTS[letters[-1][1]]))
            continue
        if order is None:
            return None
        axis = 0 if library == "PyTorch" else array.ndim - 1
        size = array.shape[axis]
        if size % len(order):
            return None
        blocks = np.repeat(order, size // len(order))
        shape = [1] * array.ndim
        shape[axis] = size
        result.append(np.broadcast_to(blocks.reshape(shape), array.shape).reshape(-1))
    return np.concatenate(result)


RULES: tuple[Rule, ...] = (order_of_gates,)
