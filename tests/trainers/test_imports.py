"""Modules that a run loads, each run a fresh process: what it does not use costs it no time."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from repro.frameworks import FRAMEWORKS
from support.runs import PROGRAMS, ROOT, needs, some

SHARED = (
    "repro.portable",
    "repro.portable.definitions",
    "repro.portable.definitions.ranks",
    "repro.portable.backends",
    "repro.portable.backends.correlation",
    *(f"repro.portable.backends.correlation.{name}" for name in ("jax", "tensorflow")),
)
"""What the trainers' loop and native layers have from there: a few lines over arrays, and no kernels."""


def after_one_step(framework: str, numerics: str, workspace: Path) -> dict[str, Any]:
    """What tests/programs/loaded_modules.py says after one step."""
    needs(framework)
    python = str(ROOT / ".venv" / framework / "bin" / "python")
    keys = (f"--workspace={workspace}", f"params.numerics={numerics}", "params.max_steps=1")
    command = [python, "-s", "-P", str(PROGRAMS / "loaded_modules.py"), framework, *keys]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", deep=["jax"]))
@pytest.mark.parametrize("numerics", some(["deterministic", "fast"], "deterministic"))
def test_a_run_without_portable_numerics_loads_none_of_them(framework: str, numerics: str, workspace: Path) -> None:
    result = after_one_step(framework, numerics, workspace)
    loaded = result["modules"]
    assert_no_compiler(result)
    assert f"repro.trainers.native.{framework}.ranks" in loaded
    assert [name for name in loaded if name.startswith(("repro.portable", "llvmlite")) and name not in SHARED] == []


def test_pytorch_starts_without_its_compiler(workspace: Path) -> None:
    result = after_one_step("pytorch", "portable", workspace)
    assert "torch" in result["modules"]
    assert_no_compiler(result)


def assert_no_compiler(result: dict[str, Any]) -> None:
    """torch.optim's classes and torch.use_deterministic_algorithms import it, which takes as long as PyTorch itself."""
    assert "torch._dynamo" not in result["modules"]
    assert result["garbage"]  # collected again, once the framework is imported
