"""Each framework's determinism controls: strict in `deterministic`, off in `fast`; and the same bits on a GPU."""

import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from repro.run import environment
from repro.run.config import Config, Params
from support.runs import Run, python, some

# What each framework itself says of its switches, after the trainer's set_determinism().
SWITCHES = {
    "pytorch": """
import torch
print(json.dumps({
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
    "autotuning": torch.backends.cudnn.benchmark,
    "tf32": torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32,
}))""",
    "tensorflow": """
import tensorflow as tf
from tensorflow.python.framework import config
print(json.dumps({
    "deterministic": config.is_op_determinism_enabled(),
    "warn_only": False,
    "autotuning": not config.is_op_determinism_enabled(),
    "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
}))""",
    "jax": """
import os, jax
flags = os.environ.get("XLA_FLAGS", "")
print(json.dumps({
    "deterministic": "--xla_gpu_deterministic_ops=true" in flags,
    "warn_only": False,
    "autotuning": "--xla_gpu_autotune_level=0" not in flags,
    "tf32": jax.config.jax_default_matmul_precision != "highest",
}))""",
}


def switches(framework: str, numerics: str) -> dict[str, bool]:
    """In a fresh process with the environment that a run would have."""
    code = f"""
import json, os
from repro.run import environment
from repro.run.config import Config, Params
params = Params(numerics={numerics!r})
environment.apply({framework!r}, Config(params=params))
import mnist_{framework}
mnist_{framework}.set_determinism(params)
{SWITCHES[framework]}"""
    return json.loads(python(framework, code))


@pytest.mark.parametrize("framework", SWITCHES)
def test_deterministic_is_strict(framework: str) -> None:
    assert switches(framework, "deterministic") == {
        "deterministic": True,
        "warn_only": False,
        "autotuning": False,
        "tf32": False,
    }


@pytest.mark.parametrize("framework", SWITCHES)
def test_fast_switches_it_off(framework: str) -> None:
    assert switches(framework, "fast") == {
        "deterministic": False,
        "warn_only": False,
        "autotuning": True,
        "tf32": True,
    }


REPEATED = """
import sys
import numpy as np
from repro.run import config, environment, randomness
from repro.run.config import Params
from repro.run.data import Dataset
from repro.fingerprint import fingerprint
framework = sys.argv[1]
params = Params(threads=4, device="cpu")
environment.apply(framework, config.Config(params=params))
trainer_of = __import__(f"mnist_{framework}").Trainer
draw = np.random.default_rng(0)
images = draw.integers(0, 256, (60_000, 28, 28)).astype(np.uint8)  # too many for the caches: threads then drift apart
labels = draw.integers(0, 10, 60_000).astype(np.int32)
trainer = trainer_of(params, Dataset("mnist", images, labels, images, labels, None, {}))
batches = draw.integers(0, 60_000, (40, 64)).astype(np.int32)
keep = draw.integers(0, 2, (40, 64, 70)).astype(np.uint8)
found = set()
for _ in range(int(sys.argv[2])):
    trainer.load_state(randomness.initial_state(0, "lenet", "sgd"))
    losses = trainer.steps(batches, keep)
    found.add(fingerprint(trainer.state() | {"losses": losses}))
print(len(found))
"""


@pytest.mark.parametrize("framework", SWITCHES)
@pytest.mark.parametrize("times", some(["3", "10"], "3"))
def test_steps_give_the_same_bits_however_threads_interleave(framework: str, times: str) -> None:
    assert python(framework, REPEATED, framework, times) == "1\n"


SHARED = """
from repro.run import environment
from repro.run.config import Config, Params
params = Params(threads=4, device="cpu")
environment.apply("jax", Config(params=params))
from repro.native.jax.ranks import join
process = join(None, params)
print([process.share(size)[1].size for size in (1, 16, 31, 32, 34, 48, 60, 64, 66, 4096)])
"""


def test_threads_of_jax_share_batches_that_they_divide_into_parts_worth_it() -> None:
    assert python("jax", SHARED) == "[1, 1, 1, 2, 2, 3, 3, 4, 3, 4]\n"


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
from repro.run import environment
from repro.run.config import Config
wanted = dict(word.split("=") for word in sys.argv[1:])
environment.apply("tensorflow", Config(environment={"ONEDNN_VERBOSE": "1"} | wanted))
import tensorflow as tf
tf.nn.conv2d(tf.ones((1, 8, 8, 1)), tf.ones((3, 3, 1, 4)), 1, "VALID")
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 CPU")
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

TRAINER_ON = """
import sys
import numpy as np
import torch
import mnist_pytorch
from repro.run import config, environment, randomness
from repro.run.config import Params
from repro.run.data import Dataset
from repro.fingerprint import fingerprint
device, numerics, *optimizers = sys.argv[1:]
environment.apply("pytorch", config.Config(params=Params(numerics=numerics)))
mnist_pytorch.choose_device = lambda wanted: torch.device(device)
draw = np.random.default_rng(0)
images, labels = draw.integers(0, 256, (512, 28, 28)).astype(np.uint8), draw.integers(0, 10, 512).astype(np.int32)
batches = draw.integers(0, 512, (30, 32)).astype(np.int32)
keep = draw.integers(0, 2, (30, 32, 70)).astype(np.uint8)
def trainer(optimizer):
    params = Params(numerics=numerics, optimizer=optimizer)
    return mnist_pytorch.Trainer(params, Dataset("mnist", images, labels, images, labels, None, {}))
"""

# PyTorch's device without numbers can give none back, and no operation mixes its tensors with the host's.
ASKS_NOTHING = f"""{TRAINER_ON}
from torch.utils._python_dispatch import TorchDispatchMode
from repro.portable.pytorch import checks
checks.self_check = lambda device, engine: None
torch.library.register_fake("aten::_fused_sgd_")(lambda *given, **named: None)
class Devices(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, given=(), named=None):
        result = operation(*given, **(named or {{}}))
        for tensor in torch.utils._pytree.tree_leaves((given, named, result)):
            if isinstance(tensor, torch.Tensor) and tensor.device.type != device:
                print("on the host:", operation)
        return result
inputs = [torch.from_numpy(array).to(device) for array in (images[:32], labels[:32].astype(np.int64), keep[0])]
for optimizer in optimizers:
    part = trainer(optimizer)
    part._step(part.ranks, *inputs)
    with Devices():
        print(part._step(part.ranks, *inputs).device)
"""


@pytest.mark.parametrize("numerics", ["deterministic", "portable"])
def test_a_step_of_pytorch_can_be_recorded(numerics: str) -> None:
    """From its second time on, it reads nothing back from the device and copies nothing there."""
    optimizers = [optimizer for its, optimizer in OPTIMIZERS if its == numerics]
    assert len(optimizers) >= 2
    assert python("pytorch", ASKS_NOTHING, "meta", numerics, *optimizers) == "meta\n" * len(optimizers)


REPLAYED = f"""{TRAINER_ON}
(optimizer,), found = optimizers, []
for replays in (True, False):
    part = trainer(optimizer)
    if not replays:
        part.graphed = None
    part.load_state(randomness.initial_state(0, "lenet", optimizer))
    losses = [part.steps(batches[:, :size], keep[:, :size]) for size in (32, 20, 32)]
    found.append(fingerprint(part.state() | {{"losses": np.concatenate(losses)}}))
    print(len(part.graphed.graphs) if replays else found[0] == found[1])
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("numerics", "optimizer"), OPTIMIZERS)
def test_replays_of_a_cuda_graph_give_the_bits_of_eager_steps(numerics: str, optimizer: str) -> None:
    assert python("pytorch", REPLAYED, "cuda", numerics, optimizer) == "2\nTrue\n"


@pytest.mark.gpu
@pytest.mark.parametrize("framework", SWITCHES)
def test_restart_and_resume_on_the_gpu(framework: str, run: Run, workspace: Path) -> None:
    keys = ("params.device=gpu", "params.max_steps=200", "params.checkpoint_steps=50")
    first = run(framework, *keys)
    assert first.returncode == 0, first.stderr
    assert run(framework, *keys).stdout == first.stdout
    shutil.rmtree(workspace / "model")
    assert run(framework, *keys, "params.max_steps=120").stdout != first.stdout
    assert run(framework, *keys, "params.resume=auto").stdout == first.stdout
