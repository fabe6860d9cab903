"""The self-check of portable numerics: it passes here and refuses planted faults; and what is compiled."""

from typing import Any

import numpy as np
import pytest
from conftest import python

from repro.errors import ReproError
from repro.portable import checks, reference

FRAMEWORKS = ("pytorch", "tensorflow", "jax")

CHECKED = """
import importlib, os, sys
from repro.run import environment
from repro.run.config import Config, Params
from repro.errors import ReproError
framework, flags, *faults = sys.argv[1:]
environment.apply(framework, Config(params=Params(numerics="portable", device="cpu")))
os.environ["XLA_FLAGS"] = flags
names = ("grids", "convolution", "optimizers", "operations", "checks")
parts = [importlib.import_module(f"repro.portable.{framework}.{name}") for name in names]
grids, *_, ops, checks = parts
if framework == "jax":
    ops.jax.config.update("jax_enable_x64", True)
library = {"pytorch": "torch.Tensor", "tensorflow": "tf", "jax": "jnp"}[framework]
for fault in faults:
    name, planted = fault.split(" = ")
    owners = [part for part in parts if hasattr(part, name)] or [eval(f"ops.{library}")]
    right = getattr(owners[0], name)
    for owner in owners:
        setattr(owner, name, eval(planted))
    if framework == "jax":
        ops.jax.clear_caches()
    try:
        checks.self_check(*([ops.torch.device("cpu")] if framework == "pytorch" else []))
        print("passed")
    except ReproError as error:
        print(error)
    for owner in owners:
        setattr(owner, name, right)
"""
PRODUCTS = {
    "pytorch": "product = lambda x, k: right(x.float(), k.float()).double()",
    "tensorflow": "correlate = lambda *given: checks.double(right(*(ops.tf.cast(one, 'float32') for one in given)))",
    "jax": "correlate = lambda x, k: right(x.astype('float32'), k.astype('float32')).astype('float64')",
}


def checked(framework: str, *faults: str, flags: str = "") -> list[str]:
    """What the self-check says with each of these faults planted, and with these flags for XLA alone."""
    return python(framework, CHECKED, framework, flags, *faults).splitlines()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_passes_here_and_refuses_what_is_planted(framework: str) -> None:
    faults = {
        "to_state = right": "passed",
        "to_state = lambda x: x if len(x.shape) == 2 else right(x)": "a rounding to float32 between two operations",
        "to_state = lambda x: right(x * (1 - 2**-26)) if len(x.shape) == 1 else right(x)": "a step of SGD",
        "round_to_grid = lambda x, e, bits: right(x, e, bits - 1)": "rounding to a grid",
        "softmax_cross_entropy = lambda z, labels: right(z * (1 + 2**-40), labels)": "the softmax cross-entropy",
        "sqrt = lambda x: right(x) * (1 + 2**-26)": "a step of Adam",
        PRODUCTS[framework]: "is not exact on this device",
    }
    for answer, said in zip(checked(framework, *faults), faults.values(), strict=True):
        assert said in answer


PLAIN = "to_state = lambda x: ops.jnp.where(abs(x) < grids.float32.TINY, 0.0, x).astype('float32')"


def test_it_refuses_a_conversion_that_xla_drops() -> None:
    """The real fault, which shows on a CPU, too: a plain conversion, and the flag as XLA has it by default."""
    (answer,) = checked("jax", PLAIN)
    assert "the maximum of numbers rounded to float32 by the rules on this device: 64 of 64 numbers differ" in answer
    assert checked("jax", PLAIN, flags="--xla_allow_excess_precision=false") == ["passed"]
    assert checked("jax", "to_state = right", flags="--xla_allow_excess_precision=true") == ["passed"]


@pytest.mark.parametrize("inexact", [np.float32, np.float16])
def test_an_inexact_library_is_caught(inexact: Any) -> None:
    images, kernel, *expected = checks.products()
    patches = reference.patches(images.astype(np.float64), 5, 5)
    found = (patches * 2.0**-17).astype(inexact) @ (kernel.reshape(-1, 20) * 2.0**-17).astype(inexact)
    with pytest.raises(ReproError, match="is not exact on this device"):
        checks.check_products("the planted library", found.astype(np.float64) * 2.0**34, *expected[1:])
    checks.check_products("float64", patches @ kernel.reshape(-1, 20), *expected[1:])


# --- what is compiled -----------------------------------------------------------------------------------------------

COMPILED = """
import re
import numpy as np
from repro.run import environment, randomness
from repro.run.config import Config, Params
from repro.run.data import Dataset
from repro.run.ranks import ALONE
params = Params(numerics="portable", device="cpu", threads=1)
environment.apply("FRAMEWORK", Config(params=params))
from mnist_FRAMEWORK import Trainer
images, labels = np.zeros((64, 28, 28), np.uint8), np.zeros(64, np.int32)
trainer = Trainer(params, Dataset("mnist", images, labels, images, labels, None, {}))
trainer.load_state(randomness.initial_state(0, "lenet", "sgd"))
batches, keep = np.zeros((2, 32), np.int32), np.zeros((2, 32, 70), np.uint8)
"""
JAX_TEXT = """
lowered = Trainer._run.lower(
    trainer, ALONE, trainer.weights, trainer.slots, trainer.train_images, trainer.train_labels, 2, batches, keep
)
for text in (lowered.as_text("hlo"), lowered.compile().as_text()):
    print(len(re.findall(r" reduce-precision\\(.*exponent_bits=8, mantissa_bits=23", text)))
"""
TENSORFLOW_TEXT = """
import tensorflow as tf
step = trainer._compiled_step.experimental_get_compiler_ir(
    ALONE, trainer.train_images[:32], trainer.train_labels[:32], tf.constant(keep[0])
)
for text in (step(stage="hlo"), step(stage="optimized_hlo")):
    print(len(re.findall(r"s64\\[[0-9,]*\\]\\S* and\\(", text)))
"""
ROUNDINGS = 3 * 8  # of each of eight weights the gradient, the momentum, and the weight itself


@pytest.mark.parametrize(("framework", "shown"), [("jax", JAX_TEXT), ("tensorflow", TENSORFLOW_TEXT)])
def test_a_compiled_step_holds_every_rounding(framework: str, shown: str) -> None:
    written, compiled = map(int, python(framework, COMPILED.replace("FRAMEWORK", framework) + shown).split())
    assert compiled >= ROUNDINGS
    assert written >= ROUNDINGS
