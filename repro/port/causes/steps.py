"""Gradients agree, and what the optimizers make of them does not."""

import math
from collections.abc import Iterator

import numpy as np

from repro.port.causes.case import ARRAYS, GRADIENTS, OPTIMIZER, WEIGHTS, Case, Rule, round_number, rule
from repro.port.updates import Update

EQUAL = 2e-3
"""The relative distance at which two coefficients of a fit are equal: float32 weights round what they are fitted to."""
KINDS = {"average": "an average of gradients", "squares": "one of their squares"}
Both = tuple[Update, Update]


@rule(
    ARRAYS,
    "write the decay on one side as the other one has it: AdamW and optax.adamw are decoupled, weight_decay of Adam and add_decayed_weights before it are not",
)
def coupled_decay(case: Case) -> str | None:
    """On one side the decay of weights is added to the gradient, on the other side it is taken from the weight."""
    for a, b in _both(case):
        coupled = [abs(one.coupled) > 0 for one in (a, b)]
        direct = [abs(one.form.decay) > 0 and _matters(one) for one in (a, b)]
        for side in (0, 1):
            if coupled[side] and not coupled[1 - side]:
                rest = "taken from the weight" if direct[1 - side] else "not there"
                words = f"the decay of weights, {_short((a, b)[side].coupled)}, is a part of the gradient in {'AB'[side]}, and {rest} in {'BA'[side]}"
                return f"{words}: {'coupled and decoupled weight decay' if direct[1 - side] else 'a weight decay that only one side has'}"
    return None


@rule(ARRAYS, "give both the same decay, and leave out the same weights")
def another_decay(case: Case) -> str | None:
    """The changes of the weights differ by a multiple of the weights, which one side alone takes away."""
    for a, b in _both(case):
        if a.coupled or b.coupled or a.form.form != b.form.form or "other" in (a.form.form, b.form.form):
            continue
        decays = [one.form.decay if _matters(one) else 0.0 for one in (a, b)]
        if _equal(a.form.rate, b.form.rate) and not _equal(*decays):
            sides = [
                _short(decay / one.form.rate) if decay else "no" for decay, one in zip(decays, (a, b), strict=True)
            ]
            return (
                f"beside the step of the gradient, `{a.name}` has a decay of {case.in_words(*sides)} (times the rate)"
            )
    return None


@rule(
    ARRAYS,
    "put both into one order: PyTorch and Optax add epsilon after the bias correction of both averages; Keras before it",
)
def place_of_epsilon(case: Case) -> str | None:
    """Both sides divide by a root and an epsilon, whose size or place differs, in most of the weights alike."""
    both = [(a, b) for a, b in _both(case) if {a.form.form, b.form.form} <= {"adaptive", "inside"}]
    mixed = [(a, b) for a, b in both if a.form.form != b.form.form]
    if mixed and len(mixed) == len(both):
        inner = ("inside of the root" if one.form.form == "inside" else "outside of the root" for one in mixed[0])
        return f"epsilon stands {case.in_words(*inner)}: `{mixed[0][0].name}`"
    plain = [(a, b) for a, b in both if a.form.form == b.form.form and _equal(a.form.rate, b.form.rate)]
    deciding = [(a, b) for a, b in plain if _decides(a, b.form.epsilon) or _decides(b, a.form.epsilon)]
    if not deciding or 2 * len(deciding) < len(both):
        return None
    epsilons = [[pair[side].form.epsilon for pair in deciding] for side in (0, 1)]
    middle, steady = [float(np.median(of)) for of in epsilons], [_is_steady(of) for of in epsilons]
    larger = int(middle[1] > middle[0])
    if not steady[larger] or not middle[1 - larger] or middle[larger] < 1.5 * middle[1 - larger]:
        return None
    ratio, squares = middle[larger] / middle[1 - larger], deciding[0][0].state("squares")
    if all(steady) and squares and 0 < squares.factor < 1 and _near(ratio, 1 / math.sqrt(squares.factor), 0.02):
        early, late = "AB"[larger], "BA"[larger]
        return (
            f"epsilon is added before the bias correction in {early}, after it in {late}: it weighs {_short(ratio)} times "
            f"as much there, 1 / sqrt(1 - beta2)"
        )
    words = [_short(value) if sure else f"about {value:.0e}" for value, sure in zip(middle, steady, strict=True)]
    return f"epsilon is {case.in_words(*words)}, beside the root of the averaged squares"


@rule(
    ARRAYS, "give both the same kind of optimizer and the same betas; torch.optim, Optax and Keras have other defaults"
)
def another_average(case: Case) -> str | None:
    """The states of the optimizers are averages of other kinds, or take another share of the first gradient."""
    for a, b in _both(case):
        kinds = [sorted({state.kind for state in one.states} - {"other"}) for one in (a, b)]
        if all("squares" in of for of in kinds) and kinds[0] != kinds[1]:
            words = [" and ".join(KINDS[kind] for kind in of) for of in kinds]
            return f"`{a.name}`: the optimizer keeps {case.in_words(*words)}"
        squares = [one.state("squares") for one in (a, b)]
        average = [one.state("average") for one in (a, b)]
        if squares[0] is None or squares[1] is None:
            continue
        means = average[0].factor / average[1].factor if average[0] and average[1] else 1.0
        if _near(squares[0].factor / squares[1].factor, means**2, 0.01):
            continue  # other gradients, not other averages
        name, which = (
            ("squares", squares) if not _equal(squares[0].factor, squares[1].factor) else ("gradients", average)
        )
        kept = [f"{1 - one.factor:.4g}" for one in which if one]
        return f"the average of {name} keeps {case.in_words(*kept)} (beta{2 if name == 'squares' else 1})"
    return None


@rule(ARRAYS, "correct the bias on both sides: the averages begin with zeros")
def bias_correction(case: Case) -> str | None:
    """The averages are equal, and the changes differ by the factor of Adam's bias correction at the first step."""
    for a, b in _both(case):
        average, squares = a.state("average"), a.state("squares")
        if not average or not squares or squares.factor <= 0 or {a.form.form, b.form.form} != {"adaptive"}:
            continue
        factor, ratio = average.factor / math.sqrt(squares.factor), b.form.rate / a.form.rate
        for value, side in ((ratio, "B"), (1 / ratio, "A")):
            if not _near(factor, 1, EQUAL) and _near(value, factor, 0.01):
                return (
                    f"{side} does not correct the bias of Adam's averages: its first change is up to {_short(factor)} times that "
                    f"of the other side, (1 - beta1) / sqrt(1 - beta2)"
                )
    return None


@rule(ARRAYS, "clip on both sides by one rule, value, norm or global norm, before the optimizer")
def gradient_clipping(case: Case) -> str | None:
    """One side's optimizer was given gradients cut by value, by each weight's norm, or by the norm of all, and the other side's another way or not."""
    both = list(_both(case))
    words = [_clipped([pair[side] for pair in both], [pair[1 - side] for pair in both]) for side in (0, 1)]
    if words[0] == words[1] or not any(words):
        return None
    rate = _base([a for a, _ in both], [b for _, b in both])
    return f"gradients are {case.in_words(*(word or 'not clipped' for word in words))}, if those that are not cut have a factor of {_short(rate or 1)}"


@rule(
    ARRAYS,
    "print the rate of the first step on both sides: a schedule may begin with 0, with its first value, or with its second one",
)
def rate_of_the_first_step(case: Case) -> str | None:
    """The changes of all weights differ by one factor, and nothing else: the learning rate of the first step."""
    both = list(_both(case))
    if case.quantity != WEIGHTS or not both:
        return None
    still = [all(pair[side].form.form == "none" for pair in both) for side in (0, 1)]
    if still[0] != still[1]:
        return f"the first step changes no weight in {'A' if still[0] else 'B'}: its rate is 0, as a schedule's that warms up from 0"
    ratios = [ratio for a, b in both if (ratio := _ratio(a, b))]
    forms = {one.form.form for pair in both for one in pair} - {"other", "none"}
    if len(ratios) == len(both) and len(forms) == 1 and all(_near(ratio, ratios[0], EQUAL) for ratio in ratios):
        rates = [float(np.median([pair[side].form.rate for pair in both])) for side in (0, 1)]
        larger = max(ratios[0], 1 / ratios[0])
        nesterov = (
            forms == {"linear"}
            and any(one.slots for pair in both for one in pair)
            and round_number(larger - 1, 2, EQUAL)
        )
        if nesterov and 0.5 <= larger - 1 < 1:
            side, other = ("B", "A") if ratios[0] > 1 else ("A", "B")
            return f"all weights change {_short(larger)} times as far in {side}: Nesterov's momentum of {nesterov:g} in {side} and not in {other}, or another rate"
        words = case.in_words(*map(_short, rates))
        return f"the rate of the first step is {words}: all weights change {_short(ratios[0])} times as far in B"
    return None


@rule(
    ARRAYS, "compare how the loss is reduced, how passes are accumulated, and how gradients are averaged among devices"
)
def scaled_gradients(case: Case) -> str | None:
    """All gradients differ by one factor, though the losses agree."""
    if case.quantity != GRADIENTS:
        return None
    ratios = []
    for match in case.matching.matches:
        both = match.arrays(case.sides[0].gradients, case.sides[1].gradients)
        if both is not None and both[0].any():
            a, b = (np.asarray(array, np.float64).ravel() for array in both)
            ratio = float(a @ b / (a @ a))
            if np.linalg.norm(b - ratio * a) > EQUAL * np.linalg.norm(b):
                return None
            ratios.append(ratio)
    if not ratios or _equal(ratios[0], 1.0) or not all(_near(ratio, ratios[0], EQUAL) for ratio in ratios):
        return None
    return f"all gradients of B are {_short(ratios[0])} times those of A, though the losses agree"


def _both(case: Case) -> Iterator[Both]:
    """The first steps that tell something: of weights with gradients."""
    if case.quantity in (OPTIMIZER, WEIGHTS):
        yield from ((a, b) for _, a, b in case.steps if a.gradient.size >= 4 and a.gradient.any())


def _matters(update: Update) -> bool:
    """True if the decay that was fitted is more than rounding."""
    part = abs(update.form.decay) * np.linalg.norm(update.before)
    return part > EQUAL * np.linalg.norm(update.change)


def _is_steady(numbers: list[float]) -> bool:
    """True if most of some numbers are about the same one."""
    middle = float(np.median(numbers))
    return 3 * sum(_near(number, middle, 0.05) for number in numbers) >= 2 * len(numbers)


def _decides(update: Update, epsilon: float) -> bool:
    """True if a change follows from its own epsilon, and clearly less well from another one."""
    h, form = update.gradient + update.coupled * update.before, update.form
    rests = [
        np.linalg.norm(form.rate * h / (np.abs(h) + each) + form.decay * update.before + update.change)
        for each in (form.epsilon, epsilon)
    ]
    return bool(rests[1] > 4 * rests[0])


def _ratio(a: Update, b: Update) -> float | None:
    """The one factor by which two changes differ; None where it is not one."""
    if not a.change.any() or not b.change.any():
        return None
    ratio = float(a.change @ b.change / (a.change @ a.change))
    rest = float(np.linalg.norm(b.change - ratio * a.change) / np.linalg.norm(b.change))
    return ratio if rest < EQUAL and not _near(ratio, 1, EQUAL) else None


def _given(update: Update) -> np.ndarray | None:
    """The gradient that the optimizer was given, up to a factor of all weights; None where that does not follow."""
    average = update.state("average")
    if average and update.state("squares"):
        return update.slots[average.name]
    squares = update.state("squares")
    adaptive = squares is not None or update.form.form in ("adaptive", "inside")
    return None if adaptive else -update.change


def _clipped(own: list[Update], other: list[Update]) -> str:
    """How the gradients of one side were clipped, in words; empty where they were not."""
    given = [_given(update) for update in own]
    if not given or any(one is None for one in given):
        return ""
    pairs = [(one, update.gradient) for one, update in zip(given, own, strict=True) if one is not None and one.any()]
    base = _base(own, other)
    if not pairs or base is None:
        return ""
    single = [_limit(one / base, gradient) for one, gradient in pairs]
    if any(single) and len({f"{limit:.2e}" for limit in single if limit}) == 1:
        return f"cut off at {_short(next(limit for limit in single if limit))} each"
    factors = [float(one @ gradient / (gradient @ gradient)) / base for one, gradient in pairs]
    if not all(
        np.linalg.norm(one / base - f * gradient) <= EQUAL * np.linalg.norm(one / base)
        for (one, gradient), f in zip(pairs, factors, strict=True)
    ):
        return ""
    norms = [float(np.linalg.norm(gradient)) for _, gradient in pairs]
    cut = [factor * norm for factor, norm in zip(factors, norms, strict=True) if factor < 1 - EQUAL]
    if not cut:
        return ""
    if (
        len(cut) > 1
        and all(_near(norm, cut[0], EQUAL) for norm in cut)
        and not all(_near(f, factors[0], EQUAL) for f in factors)
    ):
        return f"scaled to a norm of {_short(cut[0])} for each weight"
    if all(_near(factor, factors[0], EQUAL) for factor in factors):
        whole = factors[0] * math.hypot(*norms)
        near = round_number(whole, 2, EQUAL)
        return f"scaled to a norm of {near:g} of all together" if near else ""
    return ""


def _limit(given: np.ndarray, gradient: np.ndarray) -> float:
    """The magnitude at which single elements are cut off; 0 where they are not."""
    largest = float(np.abs(given).max())
    cut = np.abs(given) >= largest * (1 - 1e-4)
    if cut.sum() < 2 or not (np.abs(gradient[cut]) > largest * (1 + EQUAL)).any():
        return 0.0
    return (
        largest if np.allclose(given, np.clip(gradient, -largest, largest), rtol=EQUAL, atol=EQUAL * largest) else 0.0
    )


def _base(own: list[Update], other: list[Update]) -> float | None:
    """The coefficient of a gradient that is not clipped: the largest one of both sides."""
    factors = [0.0]
    for update in [*own, *other]:
        average, given = update.state("average"), _given(update)
        if average and update.state("squares"):
            factors.append(abs(average.factor))
        elif update.form.form in ("linear", "clipped"):
            factors.append(abs(update.form.rate))
        elif given is not None and given.any():
            some = np.abs(update.gradient) > EQUAL * np.abs(update.gradient).max()
            factors.append(float(np.max(np.abs(given[some]) / np.abs(update.gradient[some]))))
    return max(factors) or None


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= EQUAL * max(abs(a), abs(b))


def _near(value: float, target: float, tolerance: float) -> bool:
    return abs(value - target) <= tolerance * abs(target)


def _short(number: float) -> str:
    near = round_number(number, 2, EQUAL)
    return f"{near if near is not None else number:.4g}"


RULES: tuple[Rule, ...] = (
    coupled_decay,
    another_average,
    bias_correction,
    gradient_clipping,
    place_of_epsilon,
    another_decay,
    rate_of_the_first_step,
    scaled_gradients,
)
