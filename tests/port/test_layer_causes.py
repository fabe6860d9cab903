"""Rules about layers with weights of their own, and about what is built of several: each with what only looks like it."""

import math
from pathlib import Path

import numpy as np
import pytest

from repro.port.port import Port
from support.ports import JAX, KERAS, TORCH, Written, compared, drawn

Pads = tuple[int, int]


def why(port: Port, rule: str | None, *words: str) -> None:
    """Checks the first difference's cause; None: there is a difference, and no rule names a cause."""
    assert port.first is not None
    assert (port.why.rule if port.why else None) == rule
    for each in words:
        assert each in str(port.why)


IMAGES = drawn(3, 6, 6, 2)
"""Channels last."""


def convolved(x: np.ndarray, kernel: np.ndarray, pads: Pads, stride: int = 2) -> np.ndarray:
    """A convolution with loops: float64[n, height, width, out]; the kernel is [3, 3, in, out]."""
    x = np.pad(x, [(0, 0), pads, pads, (0, 0)])
    size = (x.shape[1] - 3) // stride + 1
    made = np.zeros((len(x), size, size, kernel.shape[-1]))
    for i in range(size):
        for j in range(size):
            part = x[:, i * stride : i * stride + 3, j * stride : j * stride + 3]
            made[:, i, j] = np.einsum("nhwi,hwio->no", part, kernel)
    return made


def convolution(frameworks: dict[str, str], pads: Pads, factor: float = 1.0) -> Written:
    torch, kernel = frameworks is TORCH, drawn(3, 3, 2, 4, seed=5)
    y = convolved(IMAGES, kernel, pads) * factor
    if torch:
        side = Written(frameworks, {"conv.weight": kernel.transpose(3, 2, 0, 1)}, {})
        side.call("conv", "Conv2d", IMAGES.transpose(0, 3, 1, 2), y.transpose(0, 3, 1, 2))
    else:
        side = Written(frameworks, {"Conv_0.kernel": kernel}, {})
        side.call("Conv_0", "Conv", IMAGES, y)
    return side


def test_padding_at_one_end(tmp_path: Path) -> None:
    port = compared(tmp_path, convolution(TORCH, (1, 1)), convolution(JAX, (0, 1)))
    why(port, "padding of a convolution", "1 before and 1 after each axis, with stride 2 in A, 0 before and 1 after")
    assert port.place is not None
    assert port.place.module == "conv"


def test_a_convolution_that_is_scaled_is_not_one_of_another_padding(tmp_path: Path) -> None:
    why(compared(tmp_path, convolution(TORCH, (1, 1)), convolution(JAX, (1, 1), 1.5)), None)


def test_convolutions_with_one_padding_agree(tmp_path: Path) -> None:
    assert compared(tmp_path, convolution(TORCH, (0, 1)), convolution(KERAS, (0, 1))).first is None


def norm(frameworks: dict[str, str], epsilon: float, inside: bool = True, factor: float = 1.0) -> Written:
    names = ("norm.weight", "norm.bias") if frameworks is TORCH else ("LayerNorm_0.scale", "LayerNorm_0.bias")
    names = ("layer/norm.gamma", "layer/norm.beta") if frameworks is KERAS else names
    x, scale, bias = drawn(5, 7, 8), drawn(8, seed=1), drawn(8, seed=2)
    variance = x.var(-1, keepdims=True)
    root = np.sqrt(variance + epsilon) if inside else np.sqrt(variance) + epsilon
    y = (x - x.mean(-1, keepdims=True)) / root * scale * factor + bias
    side = Written(frameworks, dict(zip(names, (scale, bias), strict=True)), {})
    side.call(names[0].rpartition(".")[0], "LayerNorm", x, y, settings={"epsilon": str(epsilon)})
    return side


def test_epsilon_outside_of_the_root(tmp_path: Path) -> None:
    port = compared(tmp_path, norm(TORCH, 1e-3), norm(JAX, 1e-3, inside=False))
    why(port, "normalization", "inside of the root in A", "outside of the root in B")


def test_another_epsilon(tmp_path: Path) -> None:
    port = compared(tmp_path, norm(TORCH, 1e-5), norm(KERAS, 1e-3))
    why(port, "normalization", "epsilon 1e-05 inside of the root in A", "epsilon 0.001 inside of the root in B")
    port = compared(tmp_path / "turned", norm(KERAS, 1e-3), norm(TORCH, 1e-5))
    why(port, "normalization", "epsilon 0.001 inside of the root in A", "epsilon 1e-05 inside of the root in B")


def test_a_norm_that_is_scaled_is_not_one_of_another_epsilon(tmp_path: Path) -> None:
    why(compared(tmp_path, norm(TORCH, 1e-3), norm(JAX, 1e-3, factor=1.1)), None)


def rotated(x: np.ndarray, halves: bool) -> np.ndarray:
    """Positions turned one by one: float64[samples, positions, heads, 4]."""
    made = x.copy()
    for position in range(x.shape[1]):
        for pair in range(2):
            first, second = (pair, pair + 2) if halves else (2 * pair, 2 * pair + 1)
            angle = position * 10000 ** (-pair / 2)
            a, b = x[:, position, :, first], x[:, position, :, second]
            made[:, position, :, first] = a * math.cos(angle) - b * math.sin(angle)
            made[:, position, :, second] = b * math.cos(angle) + a * math.sin(angle)
    return made


def attention(frameworks: dict[str, str], halves: bool = True, bits: int | None = None, factor: float = 1.0) -> Written:
    torch, x = frameworks is TORCH, drawn(2, 5, 8)
    kernels = {name: drawn(8, 8, seed=n) for n, name in enumerate(("query", "key", "value", "out"))}
    weights = {f"{name}.{'weight' if torch else 'kernel'}": k if torch else k.T for name, k in kernels.items()}
    side = Written(frameworks, weights, {})
    kind = "Linear" if torch else "Dense"
    q, k, v = (side.call(name, kind, x, x @ kernels[name].T) for name in ("query", "key", "value"))
    q, k, v = (part.reshape(2, 5, 2, 4) for part in (q, k, v))
    scores = np.einsum("bqhd,bkhd->bhqk", rotated(q, halves), rotated(k, halves)) / 2
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    if bits is not None:
        mantissa, exponent = np.frexp(shares)
        shares = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    mixed = np.einsum("bhqk,bkhd->bqhd", shares, v).reshape(2, 5, 8) * factor
    side.call("out", kind, mixed, mixed @ kernels["out"].T)
    return side


def test_rotary_pairs(tmp_path: Path) -> None:
    port = compared(tmp_path, attention(TORCH, halves=True), attention(JAX, halves=False))
    why(port, "rotary pairs", "two halves in A", "neighbours in B")


def test_a_softmax_of_fewer_bits(tmp_path: Path) -> None:
    port = compared(tmp_path, attention(TORCH), attention(KERAS, bits=8))
    why(port, "precision of a softmax", "bfloat16 in B")


@pytest.mark.parametrize("factor", [1.5, 1.001])
def test_attention_that_is_scaled(factor: float, tmp_path: Path) -> None:
    why(
        compared(tmp_path, attention(TORCH), attention(JAX, factor=factor)),
        "scaled result",
        f"{factor:g} times that of A",
    )


def block(frameworks: dict[str, str], before: bool, noise: float = 0.0, residual: float = 1.0) -> Written:
    """A dense layer with a residual, and the norm before it or after the sum."""
    torch, x = frameworks is TORCH, drawn(4, 8)
    kernel, scale = drawn(8, 8, seed=1), drawn(8, seed=2)
    names = ("norm.weight", "dense.weight") if torch else ("norm.scale", "dense.kernel")
    side = Written(frameworks, dict(zip(names, (scale, kernel if torch else kernel.T), strict=True)), {})

    def normed(x: np.ndarray) -> np.ndarray:
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale
        return side.call("norm", "LayerNorm", x, y)

    def dense(x: np.ndarray) -> np.ndarray:
        return side.call("dense", "Linear", x, x @ kernel.T)

    y = x + dense(normed(x)) if before else normed(residual * x + dense(x))
    root = {
        "module": "",
        "type": "Block",
        "settings": {},
        "inputs": {"0": x},
        "outputs": {"": y + noise},
        "exact": {"": y + noise},
    }
    side.calls.insert(0, root)
    return side


def test_the_place_of_a_norm(tmp_path: Path) -> None:
    port = compared(tmp_path, block(TORCH, before=True), block(JAX, before=False))
    why(port, "place of the norm", "`norm` comes before `dense` in A, and after its sum with what it was given in B")


def test_a_norm_of_a_layers_result_is_not_one_of_a_sum(tmp_path: Path) -> None:
    why(compared(tmp_path, block(TORCH, before=True), block(JAX, before=False, residual=0.0)), None)


def test_a_block_that_adds_something_else(tmp_path: Path) -> None:
    why(
        compared(tmp_path, block(TORCH, before=True), block(JAX, before=True, noise=0.5)),
        "missing sum",
        "B is A and a vector of 8 numbers",
    )


def recurrent(frameworks: dict[str, str], order: tuple[int, ...] = (0, 1, 2, 3), factor: float = 1.0) -> Written:
    """An LSTM's weights, whose blocks are in an order, and a result that depends on it."""
    torch, x = frameworks is TORCH, drawn(2, 3, 5)
    blocks = drawn(4, 6, 5, seed=1)
    kernel = blocks[list(order)].reshape(24, 5)
    side = Written(frameworks, {"lstm.weight_ih_l0" if torch else "lstm.kernel": kernel if torch else kernel.T}, {})
    parts = np.split(x @ kernel.T, 4, -1)
    side.call("lstm", "LSTM", x, factor * np.tanh(parts[0] + 2 * parts[1] + 3 * parts[2] + 5 * parts[3]))
    return side


def test_gates_in_another_order(tmp_path: Path) -> None:
    port = compared(tmp_path, recurrent(TORCH), recurrent(KERAS, (0, 2, 1, 3)))
    why(port, "order of gates", "the forget gate", "the values of the cell gate in B")
    assert "blocks 0 2 1 3" in str(port.matching.matches[0])


def test_gates_in_one_order_and_another_result(tmp_path: Path) -> None:
    why(compared(tmp_path, recurrent(TORCH), recurrent(KERAS, factor=2.0)), "scaled result", "2 times that of A")


def averages(frameworks: dict[str, str], share: float, unbiased: bool, added: float = 0.0) -> Written:
    """Batch normalization whose running averages take a share of the batch's."""
    torch, x = frameworks is TORCH, drawn(10, 3)
    names = ("norm.weight", "norm.bias") if torch else ("norm.scale", "norm.beta")
    side = Written(frameworks, dict(zip(names, (drawn(3, seed=1), drawn(3, seed=2)), strict=True)), {})
    y = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * side.weights[names[0]] + side.weights[names[1]]
    ends = ("running_mean", "running_var") if torch else ("mean", "var")
    side.call("norm", "BatchNorm", x, y, buffers=dict(zip(ends, (np.zeros(3), np.ones(3)), strict=True)))
    new = x.mean(0), x.var(0, ddof=int(unbiased))
    side.buffers = {
        f"norm.{end}": (1 - share) * old + share * now + added
        for end, old, now in zip(ends, (0.0, 1.0), new, strict=True)
    }
    return side


def test_momentum_of_running_averages(tmp_path: Path) -> None:
    port = compared(tmp_path, averages(TORCH, 0.1, unbiased=False), averages(JAX, 0.9, unbiased=False))
    why(port, "momentum of averages", "0.1 in A, 0.9 in B: one momentum is 1 minus the other")


def test_variance_over_one_less(tmp_path: Path) -> None:
    port = compared(tmp_path, averages(TORCH, 0.1, unbiased=True), averages(KERAS, 0.1, unbiased=False))
    why(port, "biased variance", "over n - 1 in A, n in B, n = 10")


def test_running_averages_of_something_else(tmp_path: Path) -> None:
    why(compared(tmp_path, averages(TORCH, 0.1, unbiased=False), averages(JAX, 0.1, unbiased=False, added=0.3)), None)


def initialized(
    frameworks: dict[str, str], seed: int, deviation: float, uniform: bool = False, bias: float = 0.0
) -> Written:
    numbers = np.random.default_rng(seed)
    kernel = numbers.uniform(-1, 1, (96, 32)) * math.sqrt(3) if uniform else numbers.normal(size=(96, 32))
    torch = frameworks is TORCH
    weights = (
        {"fc.weight": kernel, "fc.bias": np.full(96, bias)}
        if torch
        else {"fc.kernel": kernel.T, "fc.bias": np.full(96, bias)}
    )
    return Written(
        frameworks, {name: array * (deviation if array.ndim > 1 else 1) for name, array in weights.items()}, {}
    )


INITIAL = [
    (
        "another initializer",
        {"deviation": math.sqrt(2 / 32)},
        {"deviation": math.sqrt(2 / 96)},
        "variance 2 / fan_in in A, 2 / fan_out in B",
    ),
    (
        "another initializer",
        {"deviation": 0.1},
        {"deviation": 0.1, "uniform": True},
        "normal of deviation 0.09957 in A, uniform",
    ),
    ("another constant", {"deviation": 0.1}, {"deviation": 0.1, "bias": 1.0}, "0 in A, with 1 in B"),
]


@pytest.mark.parametrize(("rule", "ours", "theirs", "words"), INITIAL, ids=[one[3] for one in INITIAL])
def test_initial_weights(rule: str, ours: dict, theirs: dict, words: str, tmp_path: Path) -> None:
    seeds = (1, 1) if rule == "another constant" else (1, 2)
    a, b = initialized(TORCH, seeds[0], **ours), initialized(JAX, seeds[1], **theirs)
    port = compared(tmp_path, a, b)
    assert port.first is not None
    assert port.first.name == "initial weights"
    why(port, rule, words)


def test_weights_that_both_draw_alike_are_no_difference_and_no_agreement(tmp_path: Path) -> None:
    port = compared(tmp_path, initialized(TORCH, 1, 0.1), initialized(JAX, 2, 0.1))
    assert port.first is None
    assert port.unseen is not None
    assert "both sides draw their own numbers" in port.unseen
