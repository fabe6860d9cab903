"""Each framework's determinism controls: strict in `deterministic`, off in `fast`; and the same bits on a GPU."""

import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from repro.trainers.loop import environment
from repro.trainers.loop.config import Config, Params
from support.runs import Run, program, python, some

FRAMEWORKS = ("pytorch", "tensorflow", "jax")


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", "jax", deep=["tensorflow"]))
@pytest.mark.parametrize("times", some(["3", "10"], "3"))
def test_deterministic_is_strict_and_steps_give_the_same_bits_however_threads_interleave(
    framework: str, times: str
) -> None:
    fast, deterministic, fingerprints = map(
        json.loads, program(framework, "determinism_switches", framework, times).splitlines()
    )
    assert deterministic == {"deterministic": True, "warn_only": False, "autotuning": False, "tf32": False}
    assert fast == {"deterministic": False, "warn_only": False, "autotuning": True, "tf32": True}
    assert fingerprints == 1


SHARED = """
from repro.trainers.loop import environment
from repro.trainers.loop.config import Config, Params
params = Params(threads=4, device="cpu")
environment.apply("jax", Config(params=params))
from repro.trainers.native.jax.ranks import join
process = join(None, params)
print([process.share(size)[1].size for size in (1, 16, 31, 32, 34, 48, 60, 64, 66, 4096)])
"""


def test_threads_of_jax_share_batches_that_they_divide_into_parts_worth_it() -> None:
    assert python("jax", SHARED) == "[1, 1, 1, 2, 2, 3, 3, 4, 3, 4]\n"


EXCHANGED = """
from functools import partial
import jax, numpy as np
from jax import numpy as jnp
from repro.trainers.native.jax.collectives import together
from repro.trainers.native.jax.ranks import DIVIDED, WHOLE, ThreadGroup

jax.config.update("jax_num_cpu_devices", 2)
ranks = ThreadGroup(2)

def step(x):
    loss = ranks.total(x.sum())[0]
    parts = [x * 2, x[0] - 1, x.sum(0)]
    for _ in range(2):
        most = [ranks.maximum(jnp.rint(part).astype(jnp.int32))[0] for part in parts]
        parts = [ranks.total(part * each)[0] / each.sum() for part, each in zip(parts, most)]
    return loss, {"parts": parts}

def result(function):
    spread = jax.jit(jax.shard_map(function, mesh=ranks.mesh, in_specs=DIVIDED, out_specs=WHOLE, check_vma=False))
    program = spread.trace(x).lower().as_text()
    return jax.tree.map(np.asarray, spread(x)), program.count('"stablehlo.all_reduce"')

x = np.random.default_rng(0).normal(4, 1, (3, 8)).astype(np.float32)
(alone, before), (joined, after) = map(result, (step, together(ranks, step)))
assert jax.tree.structure(alone) == jax.tree.structure(joined)
assert all(a.tobytes() == b.tobytes() for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(joined)))
print(before, after)
"""


def test_jax_asks_other_ranks_at_once_what_does_not_depend_on_their_answers() -> None:
    assert python("jax", EXCHANGED) == "13 4\n"


def test_cublas_gets_its_workspace_only_where_determinism_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    environment.apply("pytorch", Config(params=Params(numerics="fast")))
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    environment.apply("pytorch", Config())
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_the_configuration_adds_to_the_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path)})
    environment.apply("jax", Config(environment={"XLA_FLAGS": "--xla_cpu_max_isa=AVX2", "TF_X": "1"}))
    assert os.environ["XLA_FLAGS"].startswith("--xla_gpu_deterministic_ops=true")
    assert os.environ["XLA_FLAGS"].endswith(" --xla_cpu_max_isa=AVX2")
    assert os.environ["TF_X"] == "1"


def test_xla_is_told_to_keep_conversions_where_bits_must_be_equal_everywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for task in ("jax", "tensorflow"):
        monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path)})
        environment.apply(task, Config(params=Params(numerics="portable")))
        assert "--xla_allow_excess_precision=false" in os.environ["XLA_FLAGS"]
        assert os.environ["CUBLAS_EMULATE_DOUBLE_PRECISION"] == "0"


def test_jax_and_tensorflow_take_no_more_of_a_gpu_than_they_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for task, name, value in (
        ("jax", "XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
        ("tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH", "true"),
    ):
        monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path)})
        environment.apply(task, Config())
        assert os.environ[name] == value


CONVOLVED = """
import sys
from repro.trainers.loop import environment
from repro.trainers.loop.config import Config
wanted = dict(word.split("=") for word in sys.argv[1:])
environment.apply("tensorflow", Config(environment={"ONEDNN_VERBOSE": "1"} | wanted))
import tensorflow as tf
tf.nn.conv2d(tf.ones((1, 8, 8, 1)), tf.ones((3, 3, 1, 4)), 1, "VALID")
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 CPU")
@pytest.mark.deep
def test_tensorflow_convolves_with_onednn_unless_told_otherwise() -> None:
    convolved = ",exec,cpu,convolution,"
    assert convolved in python("tensorflow", CONVOLVED)
    assert convolved not in python("tensorflow", CONVOLVED, "TF_ENABLE_ONEDNN_OPTS=0")


def test_without_a_cache_nothing_compiled_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "repro").touch()
    monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path)})
    environment.apply("jax", Config())
    assert not [name for name in os.environ if "CACHE_DIR" in name]
    (tmp_path / "repro").unlink()
    environment.apply("jax", Config())
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "repro" / "jax")
    assert (tmp_path / "repro" / "jax").stat().st_mode & 0o777 == 0o700  # it holds programs, which get run


OPTIMIZERS = [
    *((numerics, name) for numerics in ("deterministic", "portable") for name in ("sgd", "adam")),
    ("deterministic", "adadelta"),
]


def test_a_step_of_pytorch_can_be_recorded() -> None:
    """From its second time on, it reads nothing back from the device and copies nothing there."""
    pairs = [f"{numerics}:{optimizer}" for numerics, optimizer in OPTIMIZERS]
    assert program("pytorch", "pytorch_steps", "recorded", "meta", *pairs) == "meta\n" * len(pairs)


@pytest.mark.gpu
@pytest.mark.parametrize(("numerics", "optimizer"), OPTIMIZERS)
def test_replays_of_a_cuda_graph_give_the_bits_of_eager_steps(numerics: str, optimizer: str) -> None:
    assert program("pytorch", "pytorch_steps", "replayed", "cuda", f"{numerics}:{optimizer}") == "2\nTrue\n"


@pytest.mark.gpu
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_restart_and_resume_on_the_gpu(framework: str, run: Run, workspace: Path) -> None:
    keys = ("params.device=gpu", "params.max_steps=200", "params.checkpoint_steps=50")
    first = run(framework, *keys)
    assert first.returncode == 0, first.stderr
    assert run(framework, *keys).stdout == first.stdout
    shutil.rmtree(workspace / "model")
    assert run(framework, *keys, "params.max_steps=120").stdout != first.stdout
    assert run(framework, *keys, "params.resume=auto").stdout == first.stdout
