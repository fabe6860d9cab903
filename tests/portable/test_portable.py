"""Portable numerics: each framework's operations against reference.py, with ==, and whole runs against one another."""

import io
import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, Run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from portable_worker import MOMENTUM, RATE, STEPS

from repro.errors import UsageError
from repro.portable import reference, rules
from repro.run import float32, golden

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
CONV = ((3, 6, 7, 2), (3, 2, 2, 5))  # an image batch and a kernel, not MNIST's
DENSE = ((5, 7), (7, 3))
FILLS = (
    "normal", "huge", "tiny", "denormal", "zero", "equal", "negative zero", "integers", "infinite", "nan", "mixed",
    "smallest", "limit",
)  # fmt: skip


class Worker:
    """A process with a framework that answers requests; see portable_worker.py."""

    def __init__(self, framework: str) -> None:
        python = ROOT / ".venv" / framework / "bin" / "python"
        command = [str(python), "-s", "-P", str(ROOT / "tests" / "portable_worker.py"), framework]
        env = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __call__(self, operation: str, *arguments: np.ndarray) -> list[np.ndarray]:
        buffer = io.BytesIO()
        np.savez(buffer, *arguments, operation=np.array(operation))
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())
        self.process.stdin.flush()
        answer = np.load(io.BytesIO(self.process.stdout.read(int.from_bytes(self.process.stdout.read(8), "little"))))
        return [answer[name] for name in answer.files]

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module", params=FRAMEWORKS)
def worker(request: pytest.FixtureRequest):
    if not (ROOT / ".venv" / request.param / "installed").exists():
        pytest.skip(f"no environment .venv/{request.param}; make it with: requirements/install.sh {request.param}")
    started = Worker(request.param)
    yield started
    started.close()


def filled(shape: tuple[int, ...], fill: str, seed: int) -> np.ndarray:
    """An array of an awkward kind, float64."""
    random = np.random.default_rng(seed)
    normal = random.standard_normal(shape)
    match fill:
        case "huge":
            return normal * 2.0**150
        case "tiny":
            return normal * 2.0**-190
        case "denormal":
            return normal * 5e-324 * 1000
        case "zero":
            return np.zeros(shape)
        case "equal":
            return np.full(shape, normal.flat[0])
        case "negative zero":
            return np.where(normal > 0, -0.0, normal)
        case "integers":
            return random.integers(-3, 4, shape).astype(np.float64)
        case "infinite":
            normal.flat[seed % normal.size] = -np.inf
        case "nan":
            normal.flat[seed % normal.size] = np.nan
        case "mixed":
            return normal * 2.0 ** random.integers(-60, 60, shape)
        case "smallest":  # that is not 0 in the state, or the next smaller number
            return random.choice([-1, 0, 1, np.nextafter(1, 0)], shape) * float32.TINY
        case "limit":  # the group that still counts, or the first that does not, at either end
            most = random.choice([1, np.nextafter(1, 0)]) * 2.0 ** random.choice([-rules.LIMIT, rules.LIMIT])
            return random.choice([-1, -0.5, 0, 0.5, 1], shape) * most
    return normal


def assert_same(found, expected) -> None:
    """Equal bits, where every NaN is one and -0 is 0: neither reaches the state."""
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == e.dtype and f.shape == e.shape
        assert np.array_equal(np.nan_to_num(f, nan=0.5) + 0, np.nan_to_num(e, nan=0.5) + 0)
        assert np.array_equal(np.isnan(f), np.isnan(e))


fills, seeds = st.sampled_from(FILLS), st.integers(0, 2**32 - 1)
many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(fills, fills, fills, seeds)
@example("normal", "normal", "normal", 0)
@many
def test_convolution_and_its_gradients(worker: Worker, inputs: str, weights: str, gradients: str, seed: int) -> None:
    (batch, height, width, _), (rows, columns, _, outputs) = CONV
    x = filled(CONV[0], inputs, seed)
    kernel = reference.to_state(filled(CONV[1], "normal" if weights in ("huge", "limit") else weights, seed + 1))
    bias = reference.to_state(filled((outputs,), "normal", seed + 2))
    gradient = filled((batch, height - rows + 1, width - columns + 1, outputs), gradients, seed + 3)
    double = kernel.astype(np.float64), bias.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = reference.conv(x, *double), *reference.conv_gradients(x, *double, gradient)
    assert_same(worker("conv", x, kernel, bias, gradient), expected)


@given(fills, fills, seeds)
@many
def test_dense_layer_and_its_gradients(worker: Worker, inputs: str, gradients: str, seed: int) -> None:
    x, gradient = filled(DENSE[0], inputs, seed), filled((DENSE[0][0], DENSE[1][1]), gradients, seed + 3)
    kernel, bias = (reference.to_state(filled(shape, "normal", seed + 1)) for shape in (DENSE[1], DENSE[1][1:]))
    double = kernel.astype(np.float64), bias.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = reference.dense(x, *double), *reference.dense_gradients(x, *double, gradient)
    assert_same(worker("dense", x, kernel, bias, gradient), expected)


# No NaN, which the frameworks order differently, and no denormal: an activation is 0 or a multiple of 2^-436.
@given(st.sampled_from([fill for fill in FILLS if fill not in ("nan", "denormal")]), seeds)
@many
def test_max_pool_and_its_ties(worker: Worker, fill: str, seed: int) -> None:
    x, gradient = filled((2, 4, 6, 3), fill, seed), filled((2, 2, 3, 3), "normal", seed + 1)
    assert_same(worker("max_pool", x, gradient), (reference.max_pool(x), reference.max_pool_gradient(x, gradient)))


@given(st.sampled_from(["normal", "zero", "equal", "integers", "negative zero"]), st.sampled_from([1, 20, 1000]), seeds)
@many
def test_softmax_cross_entropy(worker: Worker, fill: str, scale: int, seed: int) -> None:
    logits, labels = filled((4, 10), fill, seed) * scale, np.random.default_rng(seed).integers(0, 10, 4, np.int32)
    losses, gradient = worker("loss", logits, labels)
    assert_same((losses, gradient), reference.softmax_cross_entropy(logits, labels))


@given(st.sampled_from(["normal", "zero", "smallest", "mixed", "negative zero"]), st.sampled_from([0.01, 1.0]), seeds)
@many
def test_sgd(worker: Worker, fill: str, rate: float, seed: int) -> None:
    weight, momentum, gradient = (reference.to_state(filled((11,), fill, seed + i)) for i in range(3))
    expected = reference.sgd(weight, momentum, gradient, float32.nearest(rate), float32.nearest(0.9))
    assert_same(worker(f"update sgd {rate} 0.9", weight, gradient, np.array(0), momentum), expected)


@given(st.sampled_from(["normal", "zero", "smallest", "mixed"]), st.sampled_from([0, 1, 500, 36_000, 50_000]), seeds)
@many
def test_adam(worker: Worker, fill: str, count: int, seed: int) -> None:
    weight, first, second, gradient = (reference.to_state(filled((11,), fill, seed + i)) for i in range(4))
    second = np.abs(second)
    firsts, seconds = rules.adam_corrections()
    at = min(count, len(firsts) - 1)
    expected = reference.adam(weight, first, second, gradient, float32.nearest(0.001), (firsts[at], seconds[at]))
    assert_same(worker("update adam 0.001 0", weight, gradient, np.array(count), first, second), expected)


# --- a network of one's own -----------------------------------------------------------------------------------------


def test_another_network(worker: Worker) -> None:
    """Two convolutions with other kernels, one pool, two dense layers; images that are not square, a batch of 7."""
    random = np.random.default_rng(0)
    shapes = [(3, 3, 3, 4), (4,), (2, 2, 4, 5), (5,), (60, 9), (9,), (9, 4), (4,)]
    weights = [random.standard_normal(shape).astype(np.float32) / 4 for shape in shapes]
    images, labels = random.standard_normal((7, 12, 10, 3)), random.integers(0, 4, 7, np.int32)
    found = worker("network", images, labels, *weights)
    expected = trained(images, labels, weights)
    assert all(not np.array_equal(before, after) for before, after in zip(weights, expected, strict=True))
    assert_same(found, expected)


def trained(images: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> list[np.ndarray]:
    """The weights after the worker's steps, by the reference alone."""
    w, momenta = list(weights), [np.zeros_like(array) for array in weights]
    for _ in range(STEPS):
        d = [array.astype(np.float64) for array in w]
        a = reference.conv(images, d[0], d[1])
        b = np.maximum(reference.max_pool(a), 0)
        c = reference.conv(b, d[2], d[3])
        e = np.maximum(c, 0).reshape(len(images), -1)
        f = reference.dense(e, d[4], d[5])
        g = np.maximum(f, 0)
        _, gradient = reference.softmax_cross_entropy(reference.dense(g, d[6], d[7]), labels)
        gradient, *last = reference.dense_gradients(g, d[6], d[7], gradient * (1.0 / len(images)))
        gradient, *third = reference.dense_gradients(e, d[4], d[5], gradient * (f > 0))
        gradient, *second = reference.conv_gradients(b, d[2], d[3], gradient.reshape(c.shape) * (c > 0))
        gradient = reference.max_pool_gradient(a, gradient * (b > 0))
        _, *first = reference.conv_gradients(images, d[0], d[1], gradient)
        gradients = [*first, *second, *third, *last]
        rate, decay = float32.nearest(RATE), float32.nearest(MOMENTUM)
        pairs = [reference.sgd(*three, rate, decay) for three in zip(w, momenta, gradients, strict=True)]
        w, momenta = [weight for weight, _ in pairs], [momentum for _, momentum in pairs]
    return w


@pytest.mark.parametrize("terms", [2**17, 2**17 + 1, 2**20])
def test_sums_at_the_bound(worker: Worker, terms: int) -> None:
    """Operands nearly as large as their bits allow, so that one bit too many would show; against whole numbers."""
    bits = rules.operand_bits(terms)
    x, kernel = np.random.default_rng(terms).integers(2**bits - 64, 2**bits, (2, terms - 1))  # one term is the bias
    found = worker(
        "dense",
        x[None] * 2.0 ** (1 - bits),
        (kernel[:, None] * 2.0**-bits).astype(np.float32),
        np.zeros(1, np.float32),
        np.ones((1, 1)),
    )
    assert Fraction(float(found[0][0, 0])) == Fraction(int(x @ kernel), 2 ** (2 * bits - 1))


# --- the rules ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 2**33))
def test_the_bit_budget_keeps_every_partial_sum_exact(terms: int) -> None:
    bits = rules.operand_bits(terms)
    assert terms * 2 ** (2 * bits) <= 2**53
    assert bits == rules.BITS or terms * 2 ** (2 * (bits + 1)) > 2**52


def test_a_sum_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="a sum of 17179869184 products leaves 9 bits"):
        rules.operand_bits(2**34)


@given(fills, seeds)
def test_the_reference_sums_exactly(fill: str, seed: int) -> None:
    """Against rational arithmetic, which has no rounding to hide."""
    if fill in ("infinite", "nan", "huge", "limit"):
        return
    x, kernel, bias = filled((2, 9), fill, seed), filled((9, 2), "normal", seed + 1), filled((2,), "normal", seed + 2)
    y = reference.dense(x, kernel, bias)
    rounded, ones = reference._inputs(x, 10, per_sample=True)
    weights, biases = reference._weights(kernel, bias, 10)
    for i in range(2):
        for j in range(2):
            products = (Fraction(a) * Fraction(b) for a, b in zip(rounded[i], weights[:, j], strict=True))
            exact = sum(products, Fraction(0))
            assert Fraction(y[i, j]) == exact + Fraction(float(ones.ravel()[i])) * Fraction(biases[j])


def test_the_tables_of_exp_and_log_are_close() -> None:
    coarse, fine = rules.exp_tables()
    assert np.allclose(coarse, np.exp(-np.arange(8192) / 2**7), rtol=2**-26, atol=0)
    assert np.allclose(fine, np.exp(-np.arange(8192) / 2**20), rtol=2**-26, atol=0)
    coarse, fine = rules.log_tables(10)
    assert np.allclose(coarse, np.log(np.arange(256, 2561) / 256), rtol=0, atol=2**-30)
    assert np.allclose(fine, np.log1p(np.arange(4097) / 2**20), rtol=0, atol=2**-30)


# --- whole runs -----------------------------------------------------------------------------------------------------

OTHERWISE = ("params.threads=1", "params.num_workers=1", "params.batch_size_test=313")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "keys", [(), pytest.param(OTHERWISE, marks=pytest.mark.slow)], ids=["as it comes", "otherwise"]
)
def test_every_framework_gives_the_published_bits(
    framework: str, keys: tuple[str, ...], run: Run, workspace: Path
) -> None:
    done = run(framework, "params.numerics=portable", "params.max_steps=100", *keys)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == golden.read("mnist")["sgd/step-100"]
    assert "this is the published fingerprint (golden/mnist.txt, sgd/step-100)" in done.stderr
    assert "params.learning_rate=0.01 counts as 0.009999999776482582, the nearest float32" in done.stderr
    (record,) = workspace.glob(f"outputs/{framework}/*/experiment.json")
    assert json.loads(record.read_text())["portable"]["params.learning_rate"] == 0.009999999776482582


@pytest.mark.parametrize(("samples", "epochs"), [(80, 1), pytest.param(336, 2, marks=pytest.mark.slow)])
def test_a_smaller_last_batch(run: Run, samples: int, epochs: int) -> None:
    keys = ("params.numerics=portable", "params.batch_size_train=64",
            f"data.train_samples={samples}", f"params.n_epochs={epochs}")  # fmt: skip
    runs = [run(framework, *keys) for framework in FRAMEWORKS]
    assert [done.returncode for done in runs] == [0, 0, 0], [done.stderr for done in runs]
    assert len({done.stdout for done in runs}) == 1


def test_a_run_goes_through_all_three_frameworks(run: Run, workspace: Path) -> None:
    adam = ("params.numerics=portable", "params.optimizer=adam", "params.learning_rate=0.001")
    taken = "never"
    for framework, steps in (("pytorch", 10), ("jax", 25), ("tensorflow", 100)):
        done = run(framework, *adam, f"params.max_steps={steps}", f"params.resume={taken}")
        assert done.returncode == 0, done.stderr
        (taken,) = map(str, workspace.glob(f"model/{framework}/*.safetensors"))
    assert done.stdout.split()[1] == golden.read("mnist")["adam/step-100"]
