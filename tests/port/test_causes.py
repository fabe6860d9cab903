"""Rules about ports: each names its cause where it is one, and is silent about what only looks like it."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.ports import JAX, KERAS, TORCH, Arrays, Function, Written, compared, drawn, network, trained

ROWS = drawn(6, 8)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(x)


def gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def dropped(scale: float, seed: int = 7) -> Function:
    return lambda x: x * (np.random.default_rng(seed).random(x.shape) < 0.7) * scale


def image(x: np.ndarray) -> np.ndarray:
    """Sixteen numbers of a row as an image: float64[n, 4, 4, 1], channels last."""
    return x.reshape(-1, 4, 4, 1)


def averaged(padding_counts: bool) -> Function:
    """Averages of 3x3, padded by 1, with loops."""

    def pool(x: np.ndarray) -> np.ndarray:
        images = image(x)
        made = np.zeros_like(images)
        for i in range(4):
            for j in range(4):
                part = images[:, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
                made[:, i, j] = part.sum((1, 2)) / (9 if padding_counts else part.shape[1] * part.shape[2])
        return made.reshape(len(x), -1)

    return pool


BETWEEN = [
    ("activation", gelu, gelu_by_tanh, "gelu by erf in A, gelu by tanh in B"),
    ("activation", np.tanh, lambda x: np.maximum(x, 0), "tanh in A, relu in B"),
    ("scale of dropout", dropped(1 / 0.7), dropped(1.0), "times 1.429 in A, times 1 in B"),
    ("other numbers dropped", dropped(1 / 0.7), dropped(1 / 0.7, seed=8), "leaves out other numbers"),
    (
        "other numbers dropped",
        lambda x: np.maximum(x, 0),
        lambda x: dropped(1 / 0.7)(np.maximum(x, 0)),
        "of the numbers in B, and none in A",
    ),
    ("missing sum", np.tanh, lambda x: np.tanh(x) + drawn(16, seed=5), "B is A and a vector of 16 numbers"),
    ("missing sum", lambda x: np.tanh(x) * 3, lambda x: np.tanh(x) * 3 + x, "B adds what agreed before"),
    ("scaled result", np.cbrt, lambda x: np.cbrt(x) * 1.25, "the result of B is 1.25 times that of A"),
]
"""Functions between two layers: the rule, those of A and of B, and words of the cause."""


@pytest.mark.parametrize(("rule", "ours", "theirs", "words"), BETWEEN, ids=[f"{one[0]} {one[3]}" for one in BETWEEN])
def test_a_function_between_two_layers(rule: str, ours: Function, theirs: Function, words: str, tmp_path: Path) -> None:
    port = compared(tmp_path, network(TORCH, ROWS, ours), network(JAX, ROWS, theirs))
    assert port.first is not None
    assert port.first.name == "forward pass"
    assert "after fc1 of A, Dense_0 of B, before fc2, Dense_1" in port.first.text
    assert port.why is not None
    assert port.why.rule == rule
    assert words in port.why.text


@pytest.mark.parametrize("function", [gelu, gelu_by_tanh, dropped(1.0)])
def test_two_sides_with_one_function_agree(function: Function, tmp_path: Path) -> None:
    port = compared(tmp_path, network(TORCH, ROWS, function), network(KERAS, ROWS, function))
    assert port.first is None


ALIKE = [
    ("a gelu beside a function that nobody knows", gelu, lambda x: gelu_by_tanh(x) * 1.01),
    ("one side's function is not of single numbers", np.tanh, lambda x: np.tanh(x) + x.mean(-1, keepdims=True) * 0.1),
    ("dropout beside noise", dropped(1 / 0.7), lambda x: x + 0.1),
]


@pytest.mark.parametrize(("ours", "theirs"), [one[1:] for one in ALIKE], ids=[one[0] for one in ALIKE])
def test_no_cause_is_named_where_only_one_side_follows_from_a_formula(
    ours: Function, theirs: Function, tmp_path: Path
) -> None:
    port = compared(tmp_path, network(TORCH, ROWS, ours), network(JAX, ROWS, theirs))
    assert port.first is not None
    assert port.first.name == "forward pass"
    assert port.why is None


GRADIENTS = [
    drawn(16, 8, seed=11, scale=0.02),
    drawn(16, seed=12, scale=0.02),
    drawn(4, 16, seed=13, scale=0.02),
    drawn(4, seed=14, scale=0.02),
]
Step = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Arrays]]


def adam(
    rate: float = 0.01,
    epsilon: float = 1e-3,
    coupled: float = 0.0,
    decoupled: float = 0.0,
    corrected: bool = True,
    late: bool = True,
    kept: float = 0.999,
) -> Step:
    """Adam's first step. `late`: epsilon is added after the bias correction of the squares, as PyTorch does."""

    def step(w: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, Arrays]:
        g = g + coupled * w
        m, v = 0.1 * g, (1 - kept) * g**2
        if not corrected:
            change = m / (np.sqrt(v) + epsilon)
        elif late:
            change = (m / 0.1) / (np.sqrt(v / (1 - kept)) + epsilon)
        else:
            change = (m / 0.1) * math.sqrt(0.001) / (np.sqrt(v) + epsilon)
        return w - rate * (change + decoupled * w), {"exp_avg": m, "exp_avg_sq": v}

    return step


def sgd(rate: float = 0.1, clip: Function | None = None, momentum: bool = True) -> Step:
    def step(w: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, Arrays]:
        g = clip(g) if clip else g
        return w - rate * g, {"momentum": g} if momentum else {}

    return step


def by_norm(limit: float) -> Function:
    return lambda g: g * min(1, limit / float(np.linalg.norm(g)))


WHOLE = math.hypot(*(float(np.linalg.norm(g)) for g in GRADIENTS))


def rmsprop(w: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, Arrays]:
    return w - 0.01 * g / (np.abs(g) * 0.1 + 1e-8), {"square_avg": 0.01 * g**2}


STEPS = [
    ("another average", adam(), adam(kept=0.95), "optimizer", "keeps 0.999 in A, 0.95 in B (beta2)"),
    (
        "another average",
        adam(),
        rmsprop,
        "optimizer",
        "an average of gradients and one of their squares in A, one of their squares in B",
    ),
    (
        "another decay",
        adam(epsilon=1e-8, decoupled=0.01),
        adam(epsilon=1e-8, decoupled=0.05),
        "weights of step 2",
        "0.01 in A, 0.05 in B",
    ),
    ("coupled decay", adam(decoupled=0.1), adam(coupled=0.1), "optimizer", "0.1, is a part of the gradient in B"),
    (
        "bias correction",
        adam(),
        adam(corrected=False),
        "weights of step 2",
        "B does not correct the bias",
    ),
    (
        "place of epsilon",
        adam(),
        adam(late=False),
        "weights of step 2",
        "before the bias correction in B, after it in A",
    ),
    ("place of epsilon", adam(epsilon=1e-3), adam(epsilon=2e-3), "weights of step 2", "0.001 in A, 0.002 in B"),
    ("another decay", adam(), adam(decoupled=0.1), "weights of step 2", "no in A, 0.1 in B"),
    ("rate of the first step", sgd(0.1), sgd(0.025), "weights of step 2", "0.1 in A, 0.025 in B"),
    (
        "rate of the first step",
        sgd(0.1),
        sgd(0.19),
        "weights of step 2",
        "Nesterov's momentum of 0.9 in B and not in A",
    ),
    ("rate of the first step", sgd(0.1), sgd(0.0), "weights of step 2", "changes no weight in B"),
    (
        "gradient clipping",
        sgd(clip=lambda g: np.clip(g, -0.02, 0.02)),
        sgd(clip=by_norm(0.05)),
        "weights of step 2",
        "cut off at 0.02 each in A, scaled to a norm of 0.05 for each weight in B",
    ),
    (
        "gradient clipping",
        sgd(clip=lambda g: g * 0.1 / WHOLE),
        sgd(clip=by_norm(0.05)),
        "weights of step 2",
        "a norm of 0.1 of all together in A",
    ),
]
"""The first steps of two optimizers: the rule, those of A and of B, the quantity, and words of the cause."""


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "quantity", "words"), STEPS, ids=[f"{one[0]}: {one[4]}" for one in STEPS]
)
def test_a_step_of_another_optimizer(
    rule: str, ours: Step, theirs: Step, quantity: str, words: str, tmp_path: Path
) -> None:
    a, b = trained(network(TORCH, ROWS), GRADIENTS, ours), trained(network(JAX, ROWS), GRADIENTS, theirs)
    port = compared(tmp_path, a, b)
    assert port.first is not None
    assert port.first.name == quantity
    assert port.why is not None
    assert port.why.rule == rule
    assert words in port.why.text


@pytest.mark.parametrize("step", [adam(), adam(coupled=0.1), adam(late=False), sgd(clip=by_norm(0.05))])
def test_two_sides_with_one_optimizer_agree(step: Step, tmp_path: Path) -> None:
    a, b = trained(network(TORCH, ROWS), GRADIENTS, step), trained(network(KERAS, ROWS), GRADIENTS, step)
    port = compared(tmp_path, a, b)
    assert port.first is None
    assert port.unseen is None


def test_a_velocity_that_holds_the_rate_is_another_form_of_one_step(tmp_path: Path) -> None:
    """As Keras' SGD holds it: -rate times the gradient."""
    a = trained(network(TORCH, ROWS), GRADIENTS, sgd(0.1))
    b = trained(network(KERAS, ROWS), GRADIENTS, lambda w, g: (w - 0.1 * g, {"velocity": -0.1 * g}))
    assert compared(tmp_path, a, b).first is None


def test_a_step_of_an_optimizer_that_nobody_knows(tmp_path: Path) -> None:
    a = trained(network(TORCH, ROWS), GRADIENTS, sgd(0.1))
    b = trained(network(JAX, ROWS), GRADIENTS, lambda w, g: (w - 0.1 * np.cbrt(g), {}))
    port = compared(tmp_path, a, b)
    assert port.first is not None
    assert port.first.name == "weights of step 2"
    assert port.why is None


CLASSES = np.array([0, 1, 2, 3, 0, 1])
MASK = np.array([1, 1, 0, 1, 0, 1.0])


def entropies(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return -np.log((shares / shares.sum(-1, keepdims=True))[np.arange(6), CLASSES])


def smoothed(logits: np.ndarray, share: float) -> float:
    moved = logits - logits.max(-1, keepdims=True)
    logs = moved - np.log(np.exp(moved).sum(-1, keepdims=True))
    return float(((1 - share) * entropies(logits) - share * logs.mean(-1)).mean())


LOSSES = [
    (
        "sum",
        lambda z: float(entropies(z).sum()),
        "the mean of the cross entropy in A, the sum of the cross entropy in B",
    ),
    (
        "mask over all",
        lambda z: float((entropies(z) * MASK).mean()),
        "over all, with 0 for what the mask leaves out in B",
    ),
    ("mask over kept", lambda z: float((entropies(z) * MASK).sum() / MASK.sum()), "over what the mask keeps in B"),
    ("smoothing", lambda z: smoothed(z, 0.1), "labels smoothed by 0.1 in B"),
]


def with_loss(side: Written, loss: Callable[[np.ndarray], float]) -> Written:
    side.loss = loss(side.calls[0]["outputs"][""].astype(np.float32).astype(np.float64))
    side.batch |= {"labels": CLASSES, "mask": MASK}
    return side


@pytest.mark.parametrize(("loss", "words"), [one[1:] for one in LOSSES], ids=[one[0] for one in LOSSES])
def test_a_loss_of_another_formula(loss: Callable[[np.ndarray], float], words: str, tmp_path: Path) -> None:
    ours = with_loss(network(TORCH, ROWS * 0.1), lambda z: float(entropies(z).mean()))
    port = compared(tmp_path, ours, with_loss(network(JAX, ROWS * 0.1), loss))
    assert port.first is not None
    assert port.first.name == "loss"
    assert port.why is not None
    assert port.why.rule == "another reduction"
    assert words in port.why.text


def test_a_loss_with_the_squares_of_the_weights(tmp_path: Path) -> None:
    ours, theirs = network(TORCH, ROWS * 0.1), network(JAX, ROWS * 0.1)
    squares = sum(float((array**2).sum()) for array in theirs.weights.values())
    with_loss(ours, lambda z: float(entropies(z).mean()))
    with_loss(theirs, lambda z: float(entropies(z).mean() + 0.005 * squares))
    port = compared(tmp_path, ours, theirs)
    assert port.why is not None
    assert port.why.rule == "decay in the loss"
    assert "the loss of B has 0.005 times the squares of all weights in it" in port.why.text


def test_a_loss_with_a_term_that_nobody_knows(tmp_path: Path) -> None:
    ours = with_loss(network(TORCH, ROWS * 0.1), lambda z: float(entropies(z).mean()))
    theirs = with_loss(network(JAX, ROWS * 0.1), lambda z: float(entropies(z).mean() + 0.0123 * (z**2).mean()))
    port = compared(tmp_path, ours, theirs)
    assert port.first is not None
    assert port.first.name == "loss"
    assert port.why is None


BATCHES = [
    ("order of samples", lambda x: x[::-1], "the same 6 samples, in another order"),
    ("scaled batch", lambda x: x / 255, "times 0.00392"),
    ("scaled batch", lambda x: x * 2 - 1, "times 2 plus -1"),
    (None, lambda x: x**3, ""),
    (None, lambda x: x + drawn(6, 8, seed=9) * 0.01, ""),
]


@pytest.mark.parametrize(("rule", "change", "words"), BATCHES)
def test_another_batch(rule: str | None, change: Function, words: str, tmp_path: Path) -> None:
    port = compared(tmp_path, network(TORCH, ROWS), network(JAX, change(ROWS)))
    assert port.first is not None
    assert port.first.name == "batch"
    assert (port.why.rule if port.why else None) == rule
    assert words in str(port.why)
