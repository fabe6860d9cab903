"""examples/: a GPT and a residual network train to the published bits in every framework, however they run."""

import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from repro.machine.variables import DECIDING
from repro.trainers.loop import golden
from support.runs import HANG, ROOT, needs

pytestmark = [pytest.mark.spread, pytest.mark.deep]

SMALL, LONG = 5, {"gpt": 300, "resnet": 400}
EXAMPLES = list(product(LONG, ("pytorch", "jax", "tensorflow")))
GOLDEN = golden.read("examples")
Train = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def train(request: pytest.FixtureRequest) -> Train:
    """Runs `examples/NETWORK_FRAMEWORK.py ARGUMENTS`; skips the test where what it needs is missing."""

    def call(network: str, framework: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        needs(framework)
        if framework == "pytorch" and "--mode=compiled" in arguments and not code and not shutil.which("g++"):
            pytest.skip("no C++ compiler, which torch.compile needs")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(DECIDING)}
        clean |= {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}  # where tests share cores, waiting costs
        if network == "resnet":
            clean["WORKSPACE_PATH"] = str(request.getfixturevalue("data_dir").parent)
        python, script = (f".venv/{framework}/bin/python", f"examples/{network}_{framework}.py")
        command = [str(ROOT / python), "-s", str(ROOT / script), *arguments]
        done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == code, done.stderr
        return done

    return call


def published(network: str, step: int) -> str:
    return f"fingerprint {GOLDEN[f'{network}/step-{step}']}"


def last(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def others(*quick: tuple[str, str, str]) -> list[Any]:
    """These ways to run an example, and all others, which are slow."""
    more = ("", " --threads=1", " --threads=4", " --engine=int8", " --engine=int16", " --ranks=2", " --ranks=4")
    ways = [(*example, f"--mode=compiled{way}") for example in EXAMPLES for way in more]
    ways += [(*example, f"--mode=eager{way}") for example in EXAMPLES for way in more[:2]]
    ways += [(network, "pytorch", f"--mode=eager{way}") for network in LONG for way in more[2:]]
    return [*quick, *(pytest.param(*way, marks=pytest.mark.slow) for way in ways if way not in quick)]


@pytest.mark.parametrize(
    ("network", "framework", "way"),
    others(  # torch.compile takes a minute; portable/test_compiler.py compiles less
        ("gpt", "pytorch", "--mode=eager"),
        ("resnet", "pytorch", "--mode=eager"),
    ),
)
def test_every_framework_gives_the_published_bits(network: str, framework: str, way: str, train: Train) -> None:
    assert last(train(network, framework, f"--steps={SMALL}", *way.split())) == published(network, SMALL)


def test_torch_compile_without_a_compiler(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    answer = train("gpt", "pytorch", "--mode=compiled", code=2).stderr
    assert answer.startswith("error: --mode=compiled: there is no C++ compiler no-such-compiler; ")
    assert answer.count("\n") == 1


LEGS = [
    [("pytorch", 2), ("tensorflow", 3), ("jax", SMALL)],
    [("jax", 1), ("pytorch", 2), ("tensorflow", SMALL)],
    *([(framework, 3), (framework, SMALL)] for framework in ("pytorch", "jax", "tensorflow")),
]
QUICK_LEGS = "gpt", [("pytorch", 3), ("jax", SMALL)]


@pytest.mark.parametrize(
    ("network", "legs"), [pytest.param(*way, marks=pytest.mark.slow) for way in [QUICK_LEGS, *product(LONG, LEGS)]]
)
def test_resumed_in_whatever_framework(network: str, legs: list[tuple[str, int]], train: Train, tmp_path: Path) -> None:
    file, done = f"--checkpoint={tmp_path / 'state.safetensors'}", None
    for framework, steps in legs:
        done = train(network, framework, f"--steps={steps}", file, *(["--resume"] if done else []))
    assert done is not None and last(done) == published(network, SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "framework"), EXAMPLES)
def test_the_whole_training(network: str, framework: str, train: Train) -> None:
    assert last(train(network, framework, "--steps=10")) == published(network, 10)
    assert last(train(network, framework)) == published(network, LONG[network])


@pytest.mark.slow
def test_another_training_is_not_resumed(train: Train, tmp_path: Path) -> None:
    file = f"--checkpoint={tmp_path / 'state.safetensors'}"
    missing = train("resnet", "pytorch", "--steps=1", file, "--resume", code=2)
    assert "it cannot be read" in missing.stderr and len(missing.stderr.splitlines()) == 1
    train("resnet", "pytorch", "--steps=2", file)
    for network, other in (("resnet", "--seed=1"), ("resnet", "--steps=1"), ("gpt", "--steps=3")):
        refused = train(network, "pytorch", "--steps=2", other, file, "--resume", code=2)
        assert "of another network or seed, or past --steps" in refused.stderr
