"""repro.set_seeds: what it seeds, what it switches, what it refuses, and that it imports no framework."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import repro
from repro.errors import UsageError
from support.runs import HANG, ROOT, some

# What a script draws from each framework's global generator, and what the framework says of its switches.
PROBES = {
    "pytorch": """
import torch
draw = lambda: torch.rand(3).tolist() + torch.nn.Linear(2, 2).weight.flatten().tolist()
strict = lambda: [
    torch.are_deterministic_algorithms_enabled(), not torch.is_deterministic_algorithms_warn_only_enabled(),
    torch.backends.cudnn.deterministic, not torch.backends.cudnn.benchmark, "CUBLAS_WORKSPACE_CONFIG" in os.environ,
]
torch.backends.cudnn.benchmark = True""",
    "tensorflow": """
import keras, tensorflow
from tensorflow.python.framework import config
draw = lambda: tensorflow.random.uniform([3]).numpy().tolist() + keras.random.uniform([3]).numpy().tolist()
strict = lambda: [config.is_op_determinism_enabled()]""",
    "jax": """
import jax
draw = lambda: []
strict = lambda: ["--xla_gpu_deterministic_ops=true" in os.environ.get("XLA_FLAGS", "")]""",
}
SEEDED = {"pytorch": ["torch"], "tensorflow": ["tensorflow", "keras"], "jax": []}


def python(framework: str, code: str, **env: str) -> str:
    """What the code prints, in a fresh process of the framework's environment."""
    interpreter = ROOT / ".venv" / framework / "bin" / "python"
    if not interpreter.exists():
        pytest.skip(f"no environment .venv/{framework}; make it with: requirements/install.sh {framework}")
    return fresh(str(interpreter), "-c", code, **env)


def fresh(*command: str, **env: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XLA_", "CUBLAS_"))}
    clean |= {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"} | env
    return subprocess.run(command, env=clean, capture_output=True, text=True, timeout=HANG, check=True).stdout


@pytest.mark.parametrize("framework", some(PROBES, "pytorch", "jax", deep=["tensorflow"]))
def test_it_seeds_and_switches_what_is_imported(framework: str) -> None:
    code = f"""
import json, os, random
import numpy as np
import repro
{PROBES[framework]}
def after(seed, deterministic=True):
    names = repro.set_seeds(seed, deterministic)
    return dict(names=names, drawn=[random.random(), np.random.rand(), *draw()], strict=strict())
before = strict()
print(json.dumps([before, after(7), after(8), after(7), after(7, False)]))"""
    before, first, other, again, free = json.loads(python(framework, code, PYTHONHASHSEED="0"))
    assert first["names"] == ["random", "numpy", *SEEDED[framework]]
    assert first["drawn"] == again["drawn"] == free["drawn"]
    assert all(a != b for a, b in zip(first["drawn"], other["drawn"], strict=True))
    assert not all(before)
    assert all(first["strict"])
    if framework == "jax":  # flags that have been read cannot be taken back
        assert free["strict"] == first["strict"]
    else:
        assert not free["strict"][0]


@pytest.mark.parametrize("framework", some(PROBES, "pytorch", deep=["tensorflow", "jax"]))
def test_it_imports_no_framework(framework: str) -> None:
    code = (
        "import repro, sys; repro.set_seeds(0); print([m for m in ('torch', 'tensorflow', 'jax') if m in sys.modules])"
    )
    assert python(framework, code, PYTHONHASHSEED="0") == "[]\n"


@pytest.mark.deep
def test_tensorflow_is_seeded_without_keras() -> None:
    code = """
import sys, tensorflow, repro
sys.modules["keras"] = None
def after(seed):
    return repro.set_seeds(seed), float(tensorflow.random.uniform([]))
print(after(7) == after(7) != after(8), *after(7)[0])"""
    assert python("tensorflow", code, PYTHONHASHSEED="0") == "True random numpy tensorflow\n"


def test_the_flags_of_the_script_win() -> None:
    code = "import jax, os, repro; repro.set_seeds(0); repro.set_seeds(1); print(os.environ['XLA_FLAGS'])"
    flags = python("jax", code, PYTHONHASHSEED="0", XLA_FLAGS="--xla_gpu_autotune_level=4")
    assert flags == "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0 --xla_gpu_autotune_level=4\n"


@pytest.mark.parametrize("seed", [0, np.int64(7), 2**32 - 1])
def test_seeds_it_takes(seed: int) -> None:
    repro.set_seeds(seed, deterministic=False)
    drawn = random.random(), np.random.rand()
    random.seed(int(seed))
    np.random.seed(seed)
    assert drawn == (random.random(), np.random.rand())


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "0", None])
def test_seeds_it_refuses(seed) -> None:
    random.seed(1)
    state = random.getstate()
    with pytest.raises(UsageError, match=r"seed=.*: must be a whole number between 0 and 4294967295") as caught:
        repro.set_seeds(seed)
    assert f"seed={seed!r}:" in str(caught.value)
    assert random.getstate() == state


WARNS = """
import os, sys, warnings
import repro
if sys.argv[1:]:
    os.environ["PYTHONHASHSEED"] = sys.argv[1]
with warnings.catch_warnings(record=True) as caught:
    repro.set_seeds(0, deterministic=True)
    strict = len(caught)
    repro.set_seeds(0, deterministic=False)
print(strict, len(caught), *(warning.message for warning in caught))"""


@pytest.mark.parametrize("value", ["0", "7"])
def test_a_fixed_hash_seed_is_silent(value: str) -> None:
    assert fresh(sys.executable, "-c", WARNS, PYTHONHASHSEED=value) == "0 0\n"


@pytest.mark.parametrize(
    ("options", "argument", "env"),
    [
        ([], [], {}),
        ([], [], {"PYTHONHASHSEED": "random"}),
        ([], ["0"], {}),  # too late
    ],
)
def test_a_hash_seed_that_is_not_fixed_warns(options: list[str], argument: list[str], env: dict[str, str]) -> None:
    said = fresh(sys.executable, *options, "-c", WARNS, *argument, **env)
    assert said.startswith("1 1 set_seeds: PYTHONHASHSEED was not set when Python started")


def test_a_hash_seed_that_python_was_told_to_ignore_warns() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}){WARNS}"
    assert fresh(sys.executable, "-E", "-c", code, PYTHONHASHSEED="7").startswith("1 1 set_seeds:")
