"""The self-check of portable numerics: it passes here and refuses planted faults; and what is compiled."""

from pathlib import Path

import pytest

from repro.portable import checks
from support.runs import python

FRAMEWORKS = ("pytorch", "tensorflow", "jax")

CHECKED = """
import importlib, os, sys
from repro.run import environment
from repro.run.config import Config, Params
from repro.errors import ReproError
framework, flags, *faults = sys.argv[1:]
environment.apply(framework, Config(params=Params(numerics="portable", device="cpu")))
os.environ["XLA_FLAGS"] = flags
checks = importlib.import_module(f"repro.portable.{framework}.checks")
backend = importlib.import_module(f"repro.portable.{framework}.backend")
X = checks.Backend
if framework == "jax":
    checks.jax.config.update("jax_enable_x64", True)
for fault in faults:
    name, planted = fault.split(" = ")
    right = getattr(X, name)
    setattr(X, name, staticmethod(eval(planted)))
    if framework == "jax":
        checks.jax.clear_caches()
    try:
        checks.self_check(*([checks.torch.device("cpu")] if framework == "pytorch" else []))
        print("passed")
    except ReproError as error:
        print(error)
    setattr(X, name, staticmethod(right))
"""


def checked(framework: str, *faults: str, flags: str = "") -> list[str]:
    """What the self-check says with each of these faults planted in the backend, and with these flags for XLA alone."""
    return python(framework, CHECKED, framework, flags, *faults).splitlines()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_passes_here_and_refuses_what_is_planted(framework: str) -> None:
    faults = {
        "r32 = right": "passed",
        "r32 = lambda x: x if len(x.shape) == 2 else right(x)": "a rounding to float32 between two operations",
        "r32 = lambda x: right(x * (1 - 2**-26)) if len(x.shape) == 1 else right(x)": "a step of SGD",
        "rint = lambda x: right(x + 0.25)": "rounding to a grid",
        "take = lambda table, index: right(table * (1 + 2**-40), index)": "the softmax cross-entropy",
        "sqrt = lambda x: right(x * (1 + 2**-20))": "the reciprocal of a root",
        "matmul = lambda a, b: X.f64(X.f32(right(a, b)))": "a product of matrices",
        "convolve = lambda *given: X.f64(X.f32(right(*given)))": "a convolution",
        "convolve_with = lambda *given: X.f64(X.f32(right(*given)))": "gradient with respect to its kernel",
        "convolve_back = lambda *given: X.f64(X.f32(right(*given)))": "gradient with respect to its images",
    }
    for answer, said in zip(checked(framework, *faults), faults.values(), strict=True):
        assert said in answer


PLAIN = "r32 = lambda x: backend.jnp.where(abs(x) < 2.0**-100, 0.0, x).astype('float32')"


def test_it_refuses_a_conversion_that_xla_drops() -> None:
    """The real fault, which shows on a CPU, too: a plain conversion, and the flag as XLA has it by default."""
    (answer,) = checked("jax", PLAIN)
    assert "the maximum of numbers rounded to float32 by the rules on this device: 64 of 64 numbers differ" in answer
    assert checked("jax", PLAIN, flags="--xla_allow_excess_precision=false") == ["passed"]
    assert checked("jax", "r32 = right", flags="--xla_allow_excess_precision=true") == ["passed"]


SATURATES = """
import logging, os, sys
os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # as of a CPU without VNNI
import torch
from repro.portable.pytorch import checks
logging.basicConfig(format="%(message)s", stream=sys.stdout, level=logging.WARNING)
for engine in ("int8", "auto"):
    checks.self_check(torch.device("cpu"), engine)
    print(checks.Backend.engine)
"""


def test_int8_units_that_saturate_are_found_out() -> None:
    if "avx512_vnni" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX-512 VNNI: PyTorch multiplies int8 by loops of its own, which are exact")
    said, engine, *again = python("pytorch", SATURATES).splitlines()
    assert "PyTorch does not compute a product of matrices by the rules on this device" in said
    assert said.endswith("so the engine of products is not int8")
    assert (engine, again[0]) == ("float64", said) and again[1] in ("float64", "int16")


FAILING = """
import importlib, logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout, level=logging.WARNING)
from repro.portable.kernels import pairs, products
exec(sys.argv[2])
module = importlib.import_module(f"repro.portable.{sys.argv[1]}.checks")
sys.argv[1] == "jax" and module.jax.config.update("jax_enable_x64", True)
device = [module.torch.device("cpu")] if sys.argv[1] == "pytorch" else []
module.self_check(*device, "int16")
print(module.Backend.engine)
"""

FAULTS = {
    "a convolution's gradient with respect to its kernel": "pairs.PAIRS = 16",  # one more than int32 has room for
    "a product of matrices, rounded to float32": "products.BELOW_TINY = 0.0",
}


@pytest.mark.parametrize(("what", "fault"), FAULTS.items())
@pytest.mark.parametrize("framework", ["pytorch", "jax", "tensorflow"])
def test_loops_of_int16_that_fail_are_found_out(framework: str, what: str, fault: str) -> None:
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no instruction that multiplies and adds pairs of int16")
    said, engine = python(framework, FAILING, framework, fault).splitlines()
    assert f" does not compute {what} by the rules" in said and said.endswith("so the engine of products is not int16")
    assert engine == "float64"


ABSENT = """
import importlib, logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout, level=logging.WARNING)
exec(sys.argv[2])
module = importlib.import_module(f"repro.portable.{sys.argv[1]}.checks")
sys.argv[1] == "jax" and module.jax.config.update("jax_enable_x64", True)
module.self_check("int16")
print(module.Backend.engine)
"""


WITHOUT = "from repro.portable import kernels; kernels.available = False"  # as where llvmlite is not installed
ANOTHER = "from repro.portable.kernels import xla; xla.VERSION = (99, 0)"  # as with an XLA of another interface


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_an_engine_that_is_not_there_is_float64(framework: str) -> None:
    said, engine = python(framework, ABSENT, framework, WITHOUT).splitlines()
    assert said.endswith("has no engine of products int16 on this device, so it is float64") and engine == "float64"


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_an_xla_that_does_not_call_loops(framework: str) -> None:
    why, said, engine = python(framework, ABSENT, framework, ANOTHER).splitlines()
    assert " does not call loops compiled here: " in why and "repro_" in why  # the name of a function
    assert said.endswith("has no engine of products int16 on this device, so it is float64") and engine == "float64"


# --- what is compiled -----------------------------------------------------------------------------------------------

COMPILED = """
import re
import numpy as np
from repro.run import environment, randomness
from repro.run.config import Config, Params
from repro.run.data import Dataset
from repro.run.ranks import SINGLE_PROCESS
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
    trainer, SINGLE_PROCESS, trainer.weights, trainer.slots, trainer.train_images, trainer.train_labels, 2,
    batches, keep
)
for text in (lowered.as_text("hlo"), lowered.compile().as_text()):
    print(len(re.findall(r" reduce-precision\\(.*exponent_bits=8, mantissa_bits=23", text)))
"""
TENSORFLOW_TEXT = """
import tensorflow as tf
step = trainer._compiled_step.experimental_get_compiler_ir(
    SINGLE_PROCESS, trainer.train_images[:32], trainer.train_labels[:32], tf.constant(keep[0])
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


@pytest.mark.parametrize("wanted", ["auto", "int8"])
def test_a_library_that_lacks_the_products_of_an_engine_takes_float64(
    wanted: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Backend:
        engine = "float64"

    def run() -> dict[str, tuple]:
        if Backend.engine == "int8":
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\nwhen calling cublasLtMatmul")
        return checks.expected()

    checks.settle("PyTorch", Backend, wanted, run, lambda: None)
    assert Backend.engine == "float64"
    assert "PyTorch has no such products on this device (RuntimeError: CUBLAS_STATUS_NOT_SUPPORTED)" in caplog.text
