"""Data-parallel training in the three frameworks, on loopback: the same bits for every number of ranks; failures."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, SECONDS, Run

from repro import checkpoint, config, golden, launch, randomness
from repro.checkpoint import Checkpoint, Record
from repro.config import Config, Params

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
PORTABLE = ("params.numerics=portable", "params.max_steps=10", "params.threads=1", "params.device=cpu")
DETERMINISTIC = ("params.max_steps=10", "params.threads=1", "params.device=cpu")
END = 30  # seconds in which a rank that dies ends the others

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def fingerprint(done: subprocess.CompletedProcess[str]) -> str:
    """Of a run that printed nothing else on stdout, and nothing but its log on stderr."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fingerprint sha256:") and done.stdout.count("\n") == 1, done.stdout
    assert not [line for line in done.stderr.splitlines() if line.startswith(("W", "E", "["))], done.stderr
    return done.stdout.split()[1]


def record(workspace: Path, framework: str) -> dict:
    (folder,) = (workspace / "outputs" / framework).iterdir()  # only one rank writes
    return json.loads((folder / "experiment.json").read_text())


def started(
    framework: str, workspace: Path, *overrides: str, ranks: int = 2, of_last: tuple[str, ...] = ()
) -> list[subprocess.Popen]:
    """The ranks of a run, as Slurm or Kubernetes would start them: nobody watches over them."""
    port = str(launch.free_port(ranks))
    command = [str(ROOT / "run.sh"), framework, f"--workspace={workspace}", *overrides]
    common = os.environ | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    running = []
    for rank in range(ranks):
        own = [*command, *(of_last if rank == ranks - 1 else ())]
        env = common | {"RANK": str(rank)}
        running.append(subprocess.Popen(own, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return running


def ended(processes: list[subprocess.Popen], timeout: float = SECONDS) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each."""
    try:
        said = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *texts) for process, texts in zip(processes, said, strict=True)]


def wait_for_checkpoint(workspace: Path, framework: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not list(workspace.glob(f"model/{framework}/*.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def other(tmp_path: Path, workspace: Path) -> Path:
    """Another workspace with the same data."""
    folder = tmp_path / "other"
    shutil.copytree(workspace, folder, symlinks=True)
    return folder


@each_framework
@pytest.mark.parametrize("ranks", [2, 4])
def test_portable_has_the_same_bits_for_every_number_of_ranks(
    framework: str, ranks: int, run: Run, workspace: Path
) -> None:
    found = fingerprint(run(framework, *PORTABLE, f"params.ranks={ranks}"))
    assert found == golden.read("mnist")["sgd/step-10"]
    assert record(workspace, framework)["config"]["params"]["ranks"] == ranks


@each_framework
def test_portable_adam_with_workers(framework: str, run: Run) -> None:
    keys = ("params.optimizer=adam", "params.learning_rate=0.001", "params.num_workers=1", "params.ranks=2")
    assert fingerprint(run(framework, *PORTABLE, *keys)) == golden.read("mnist")["adam/step-10"]


@each_framework
def test_a_last_batch_that_the_ranks_do_not_divide(framework: str, run: Run, other: Path) -> None:
    # 60,000 = 2142 x 28 + 24, and 7 divides the first alone. The run begins one step before the last, to save time.
    keys = ["params.numerics=portable", "params.batch_size_train=28", "params.device=cpu"]
    checked = Config(Params(numerics="portable", batch_size_train=28))
    state = randomness.initial_state(0, "lenet", "sgd")
    record = Record(framework, "begun", 2141, 2143, config.deciding(checked, "cpu"))
    path = checkpoint.save(other, Checkpoint(state, np.zeros(2141, np.float32), record))
    keys += [f"params.resume={path}", "params.max_steps=2143", "params.threads=1"]
    alone = fingerprint(run(framework, *keys, workspace=other))
    assert fingerprint(run(framework, *keys, "params.ranks=7")) == alone


@each_framework
def test_deterministic_has_the_same_bits_for_the_same_number(framework: str, run: Run, other: Path) -> None:
    first = fingerprint(run(framework, *DETERMINISTIC, "params.ranks=2"))
    assert fingerprint(run(framework, *DETERMINISTIC, "params.ranks=2", workspace=other)) == first


@each_framework
def test_deterministic_does_not_resume_with_another_number(framework: str, run: Run) -> None:
    fingerprint(run(framework, *DETERMINISTIC, "params.ranks=2"))
    done = run(framework, *DETERMINISTIC, "params.resume=auto")
    assert done.returncode == 2 and "params.ranks=2, this run has params.ranks=1" in done.stderr


@each_framework
def test_killed_on_four_and_resumed_on_two(framework: str, run: Run, workspace: Path) -> None:
    run(framework, "params.max_steps=1")  # skips where there is no environment
    shutil.rmtree(workspace / "model")
    keys = (*PORTABLE[:1], *PORTABLE[2:], "params.max_steps=100", "params.checkpoint_steps=2")
    ranks = started(framework, workspace, *keys, ranks=4)
    wait_for_checkpoint(workspace, framework)
    ranks[2].kill()
    killed = time.monotonic()
    codes = [(code, err) for code, _, err in ended(ranks)]
    assert time.monotonic() - killed < END
    assert codes[2][0] == -signal.SIGKILL
    for rank, (code, err) in enumerate(codes):
        if rank != 2:
            assert code == 1 and f"rank {rank} lost another rank" in err and "params.resume=auto" in err, err
    found = checkpoint.newest(workspace / "model" / framework)
    assert found is not None and found.record.step < 100
    done = run(framework, *keys, "params.resume=auto", "params.ranks=2")
    assert fingerprint(done) == golden.read("mnist")["sgd/step-100"]


@each_framework
def test_a_rank_that_dies_ends_the_run_in_one_line(framework: str, run: Run, workspace: Path) -> None:
    run(framework, "params.max_steps=1")
    shutil.rmtree(workspace / "model")
    keys = ("params.max_steps=1000", "params.checkpoint_steps=2", "params.threads=1", "params.ranks=2")
    command = [str(ROOT / "run.sh"), framework, f"--workspace={workspace}", *keys]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_checkpoint(workspace, framework)
    (victim,) = [child for child in children(parent.pid) if "RANK=1" in variables(child)]
    os.kill(victim, signal.SIGKILL)
    out, err = parent.communicate(timeout=END)
    assert (parent.returncode, out) == (1, "")
    errors = [line for line in err.splitlines() if "error" in line.lower()]
    assert errors == [err.splitlines()[-1]] and "rank 1 was killed by SIGKILL" in errors[0], err


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def variables(process: int) -> list[str]:
    return Path(f"/proc/{process}/environ").read_text().split("\0")


@each_framework
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("params.seed=1",), "rank 1 differs from rank 0 in SHA-256 of batch_order"),
        (("params.learning_rate=0.1",), "rank 1 differs from rank 0 in params.learning_rate: 0.1 and 0.01"),
        (("params.resume=auto",), "rank 1 differs from rank 0 in params.resume: auto and never"),
    ],
)
def test_ranks_that_differ_are_refused(
    framework: str, keys: tuple[str, ...], said: str, run: Run, workspace: Path
) -> None:
    run(framework, "params.max_steps=1", *PORTABLE[:1])  # leaves a checkpoint
    ranks = started(framework, workspace, *PORTABLE, of_last=keys)
    for code, out, err in ended(ranks):
        assert (code, out) == (1, ""), err
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and said in errors[0], err


def test_a_port_in_use(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        env: dict[str, str | None] = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for framework in FRAMEWORKS:
            done = run(framework, *PORTABLE, env=env)
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            assert f"port {port} cannot be listened on" in done.stderr


def test_a_launcher_that_started_another_number(run: Run) -> None:
    env: dict[str, str | None] = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = run("pytorch", *PORTABLE, "params.ranks=4", env=env)
    assert (done.returncode, done.stderr.count("\n")) == (
        2,
        1,
    ) and "params.ranks=4: the launcher started 2" in done.stderr
