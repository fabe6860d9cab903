"""Query, key and value agree, and what attention makes of them does not; the place of the norm in a block."""

import math
from collections.abc import Iterator
from itertools import permutations

import numpy as np

from repro.port.causes.case import ARRAYS, FORWARD, Case, Rule, rule
from repro.port.causes.formulas import Formula, follows, results, told_apart
from repro.port.forward import Layer
from repro.port.side import Called, Side

SAMPLES = 2
"""Samples of the batch that are computed."""
HEADS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
NEAR = 1e-5
"""The relative distance at which an attention in float32 follows from one in float64."""
ROUNDED = tuple(
    (kind, *rounded)
    for kind, bits in (("bfloat16", 8), ("float16", 11))
    for rounded in ((bits, bits), (0, bits), (bits, 0))
)
"""Types, and the bits to which logits and shares are rounded; 0: all of them."""


@rule(
    ARRAYS,
    "turn the pairs of one convention on both sides: neighbours, or the two halves; or permute the rows of query and key",
)
def rotary_pairs(case: Case) -> str | None:
    """Each side's attention follows from the same query, key and value with another rotation of positions, or with none."""
    both = told_apart(case, _attentions(case))
    return f"attention turns positions {case.in_words(*both)}" if both and both[0] != both[1] else None


@rule(ARRAYS, "compute the softmax of attention in float32 on both sides")
def precision_of_a_softmax(case: Case) -> str | None:
    """One side's attention follows from float64, the other one's better from shares of fewer bits."""
    both = results(case)
    if both is None:
        return None
    rounded = [(kind, _attentions(case, logits, shares)) for kind, logits, shares in ROUNDED]
    for _, exact in _attentions(case):
        coarse = [(kind, next(made)[1]) for kind, made in rounded]
        cut = [
            np.asarray(side, np.float64).reshape(len(side), -1)[: len(exact)]
            for side in both
            if side.size and side.shape
        ]
        if len(cut) < 2 or any(side.size != exact.size for side in cut):
            continue
        exact_sides = [follows(side, exact, NEAR) for side in cut]
        if exact_sides[0] == exact_sides[1]:
            continue
        other = cut[1] if exact_sides[0] else cut[0]
        for kind, of_fewer_bits in coarse:
            distance = [float(np.linalg.norm(other - made.reshape(other.shape))) for made in (exact, of_fewer_bits)]
            if distance[1] < distance[0] / 3:
                side = "B" if exact_sides[0] else "A"
                return f"the shares of attention have the precision of {kind} in {side}, of float32 on the other side"
    return None


def _attentions(case: Case, logits: int = 0, shares: int = 0) -> Iterator[Formula]:
    """Attentions of the three latest layers whose results agree; with logits and shares rounded to so many bits."""
    both = results(case)
    place = case.place
    if both is None or place is None or place.after is None or case.forward is None:
        return
    size = both[0].size
    until = case.forward.layers.index(place.after)
    latest = [layer for layer in case.forward.layers[:until] if layer.outputs_agree]
    single = [layer for layer in latest if _output(layer.a).size == size][-3:]
    if len(single) == 3 and all(_output(layer.a).ndim >= 3 for layer in single):
        named = {_letter(layer): layer for layer in single}
        ordered = [named[letter] for letter in "qkv"] if {*named} == {*"qkv"} else single
        parts = [_flat(_output(layer.a)) for layer in ordered]
        choices = [parts] if ordered is not single else [list(order) for order in permutations(parts)]
    elif latest and _output(latest[-1].a).size == 3 * size and _output(latest[-1].a).ndim == 3:
        choices = [np.split(_flat(_output(latest[-1].a)), 3, -1)]
    else:
        return
    width = choices[0][0].shape[-1]
    for q, k, v in choices:
        for heads in (heads for heads in HEADS if width % heads == 0 and (width // heads) % 2 == 0):
            split = [x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v)]
            for turned, words in (
                (None, "not at all"),
                (False, "in pairs of neighbours"),
                (True, "in pairs of the two halves"),
            ):
                a, b = (
                    (split[0], split[1]) if turned is None else (_rotated(split[0], turned), _rotated(split[1], turned))
                )
                for causal in (False, True):
                    scores = _rounded(a @ b.swapaxes(-1, -2) / math.sqrt(a.shape[-1]), logits)
                    made = (_rounded(_shares(scores, causal), shares) @ split[2]).transpose(0, 2, 1, 3).reshape(q.shape)
                    yield words, made


def _output(call: Called) -> np.ndarray:
    return max(call.outputs.values(), key=lambda array: array.size)


def _flat(array: np.ndarray) -> np.ndarray:
    """The first samples, each position's heads one after another: float64[samples, positions, width]."""
    values = np.asarray(array, np.float64)[:SAMPLES]
    return values.reshape(*values.shape[:2], -1)


def _letter(layer: Layer) -> str:
    """q, k or v by a layer's name; empty for others."""
    last = layer.a.name.split(".")[-1].lower()
    return next(
        (
            letter
            for letter, word in (("q", "query"), ("k", "key"), ("v", "value"))
            if last.startswith((letter, word)) or word in last
        ),
        "",
    )


def _rotated(x: np.ndarray, halves: bool, base: float = 10000.0) -> np.ndarray:
    """Rotary position embedding (arXiv:2104.09864): float64[samples, heads, positions, width]."""
    width = x.shape[-1]
    angles = np.arange(x.shape[-2])[:, None] * base ** (-np.arange(0, width, 2) / width)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = (x[..., : width // 2], x[..., width // 2 :]) if halves else (x[..., ::2], x[..., 1::2])
    turned = a * cos - b * sin, a * sin + b * cos
    return np.concatenate(turned, -1) if halves else np.stack(turned, -1).reshape(x.shape)


def _shares(logits: np.ndarray, causal: bool) -> np.ndarray:
    """The softmax of logits, of positions that are not later where attention is causal."""
    seen = np.where(np.tri(logits.shape[-2], logits.shape[-1]) > 0, logits, -np.inf) if causal else logits
    shares = np.exp(seen - seen.max(-1, keepdims=True))
    return np.asarray(shares / shares.sum(-1, keepdims=True))


def _rounded(x: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of as many bits; all of them for 0."""
    if not bits:
        return x
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0))
    return np.where(np.isfinite(x), np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits), x)


@rule(
    ARRAYS,
    "put the norm in one place: before attention and the dense layers, or after their sum with what they were given",
)
def place_of_the_norm(case: Case) -> str | None:
    """On one side a norm's result goes into a layer, on the other side the norm takes the sum that comes after that layer."""
    if case.quantity != FORWARD or case.forward is None:
        return None
    for layer in case.forward.layers:
        if not _is_norm(layer, case):
            continue
        fed = [_fed(call, case, number) for number, call in enumerate((layer.a, layer.b))]
        sums = [_is_sum(side, call) for side, call in zip(case.sides, (layer.a, layer.b), strict=True)]
        for first in (0, 1):
            if sums[1 - first] and not sums[first] and fed[first] - fed[1 - first]:
                into = sorted(fed[first] - fed[1 - first])[0]
                before, after = "AB"[first], "BA"[first]
                return f"the norm `{layer.a.name}` comes before `{into}` in {before}, and after its sum with what it was given in {after}"
    return None


def _is_norm(layer: Layer, case: Case) -> bool:
    weights = case.sides[0].weights
    return bool(layer.a.weights) and all(weights[name].ndim == 1 for name in layer.a.weights.values())


def _fed(norm: Called, case: Case, number: int) -> set[str]:
    """The layers, by A's names, that a norm's result is given to."""
    assert case.forward is not None
    result = _output(norm)
    pairs = [((layer.a, layer.b)[number], layer.a.name) for layer in case.forward.layers]
    return {
        name
        for call, name in pairs
        if call is not norm and any(x.shape == result.shape and np.array_equal(x, result) for x in call.inputs.values())
    }


def _is_sum(side: Side, norm: Called) -> bool:
    """True if a norm takes the sum of two arrays that were there before it: a residual, and a layer's result."""
    earlier = [call for call in side.calls if call.number < norm.number and not call.holds(norm)]
    for x in norm.inputs.values():
        arrays = [
            array
            for call in earlier
            for array in (*call.inputs.values(), *call.outputs.values())
            if array.size == x.size and array.dtype.kind == "f"
        ]
        unique = list({array.tobytes(): np.asarray(array, np.float64).reshape(-1) for array in arrays}.values())[-12:]
        values = np.asarray(x, np.float64).reshape(-1)
        limit = 1e-6 * float(np.abs(values).max(initial=0))
        if any(np.abs(a + b - values).max() <= limit for place, a in enumerate(unique) for b in unique[place + 1 :]):
            return True
    return False


RULES: tuple[Rule, ...] = (place_of_the_norm, rotary_pairs, precision_of_a_softmax)
