"""JAX's library: functions, training, and refusals."""

import numpy as np
import pytest

from programs import library_cases as cases
from support.libraries import assert_same, library, lines
from support.runs import python

pytestmark = pytest.mark.deep

WITHOUT_THE_SUITE = """
import sys
sys.modules |= dict.fromkeys(("hydra", "omegaconf", "mnist_jax", "optax"))
from repro.portable.jax import functional, layers, optim
"""
REFUSED = {
    "no float64": 'jax.config.update("jax_enable_x64", True)',
    "float16": "relu: x is float16",
    "bfloat16": "linear: kernel is bfloat16",
    "float64": "layer_norm: x is float64",
    "empty": "relu: x of shape [0, 5, 6]",
    "shapes": "linear: shapes [4, 5, 6] and [5, 2]",
    "kernel": "conv2d: the kernel reaches over 9 of 7",
    "padding": "max_pool2d: padding=2",
    "index": "embedding: index has numbers from 5 to 5",
    "labels": "cross_entropy: labels has numbers from -1",
    "mask": "mask is float64 and must be bool",
    "rate": "dropout: rate=1.0",
    "one sample": "batch_norm: a variance",
    "step": "Dropout: it needs the number of the training step",
    "layer's dtype": "Dense: dtype=",
    "layer's axes": "LayerNorm: reduction_axes=(1, 2)",
    "weights": "weight is float64",
    "stride": "conv2d: stride=0 must be an integer of at least 1",
    "group size": "GroupNorm: group_size=0 must be an integer of at least 1",
    "copies": "fan_out: copies=0 must be an integer of at least 1",
    "limit": "clip_by_global_norm: limit=nan must be a number of at least 0",
    "rate of NaN": "sgd: learning_rate=nan must be a number of at least 0",
    "rate below 0": "adam: learning_rate=-1.0 must be a number of at least 0",
    "rates": "sgd: learning_rate must be [], not [2]",
    "another rate": "sgd: learning_rate=-1.0 must be a number of at least 0",
    "momentum": "sgd: momentum=1.0 must be at least 0 and below 1",
    "beta of NaN": "adam: b2=nan must be from 0 to 0.99999",
    "beta below 0": "adamw: b1=-1 must be from 0 to 0.99999",
    "decay": "adamw: weight_decay=nan must be a number of at least 0",
    "rho": "adadelta: rho=1.5 must be at least 0 and below 1",
}
WAYS = (
    "compiled",
    "gradient compiled",
    "hessian",
    "reverse over reverse",
    "vmap",
    "remat",
    "scan",
    "loss and gradient",
    "of the incoming gradient",
    "clipped",
)
SECOND = [f"second derivative of {name}" for name in cases.CASES] + [f"second derivative, {name}" for name in WAYS]
REFUSED |= dict.fromkeys(SECOND, "gradient: second derivatives have no portable form")


@pytest.fixture(scope="module", autouse=True)
def computed_once() -> None:
    """All tests here look at what one process of the library computed."""
    library("jax")


@pytest.mark.parametrize("case", cases.CASES)
def test_function_and_its_gradients_are_those_of_jax(case: str) -> None:
    """Up to grids of 13 bits. Which bits they have is tested where the operations are."""
    computed = library("jax")
    names = [name for name in computed if name.startswith(f"compiled/{case}/")]
    assert len(names) >= 2
    for name in names:
        result, expected = computed[name], computed[name.replace("compiled", "float64")]
        assert result.dtype == np.float32 and result.shape == expected.shape
        assert np.abs(result - expected).max() <= 1e-3 * np.abs(expected).max()


def test_dropout_drops_by_seed_and_step() -> None:
    kept, *others = (library("jax")[f"compiled/dropout{name}/0"] != 0 for name in ("", ", step", ", seed"))
    assert abs(kept.mean() - 0.75) < 0.02
    for other in others:
        assert abs((kept & other).mean() - 0.75**2) < 0.02


@pytest.mark.parametrize("network", ["cnn", "block"])
def test_training_that_was_resumed_has_the_same_bits(network: str) -> None:
    assert_same(library("jax"), "resumed", library("jax"), network)


def test_training_changes_each_weight() -> None:
    computed = library("jax")
    for name, weight in cases.BLOCK_WEIGHTS.items():
        assert not np.array_equal(computed[f"compiled/block/weights/{name}"], weight)


def test_eager_training_has_the_same_bits() -> None:
    assert_same(library("jax"), "eager", library("jax"), "perceptron")


@pytest.mark.slow
@pytest.mark.parametrize("network", ["cnn", "block"])
def test_eager_training_of_a_network_has_the_same_bits(network: str) -> None:
    assert_same(library("jax", "eager"), "eager", library("jax"), network)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_one_line(name: str) -> None:
    line = lines("jax")[name]
    assert line.startswith("portable numerics: ") and REFUSED[name] in line and "\n" not in line


def test_a_gradient_that_is_a_constant_is_taken() -> None:
    assert lines("jax")["gradient as a constant"] == ""


@pytest.mark.parametrize("where", ["below", "above", "far above"])
@pytest.mark.parametrize("name", cases.INDEXED)
def test_compiled_code_makes_nan_of_an_index_out_of_range(name: str, where: str) -> None:
    computed = library("jax")
    for each in ("loss", "gradient"):
        assert np.isnan(computed[f"outside/{name} {where}/{each}"]).all()


SHARED = """
import jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from repro.trainers.native.jax.ranks import AXIS, ThreadGroup
from repro.portable.jax import functional
from repro.portable.backends.jax import Backend
drop = lambda x: functional.dropout(x, 0.5, 7, 3)
x = np.ones((8, 5, 6), np.float32)
alone = drop(x)
Backend.ranks = ThreadGroup(2)
halves = PartitionSpec(AXIS)
shared = jax.shard_map(drop, mesh=Mesh(np.array(jax.devices()), (AXIS,)), in_specs=halves, out_specs=halves)(x)
print(np.array_equal(alone, shared), np.array_equal(shared[:4], shared[4:]))
"""


def test_devices_that_share_a_batch_drop_what_one_alone_would() -> None:
    assert python("jax", SHARED).split() == ["True", "False"]


def test_library_needs_nothing_of_the_suite() -> None:
    python("jax", WITHOUT_THE_SUITE)
