"""Data-parallel training in the three frameworks, on loopback: the same bits for every number of ranks; failures.

Starting a framework takes most of the time here, so each run serves several purposes. They run one after another: each
looks for a free port, and has as many processes as there are cores, or more.
"""

import json
import os
import random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from repro.fingerprint import fingerprint
from repro.frameworks import FRAMEWORKS
from repro.trainers.loop import checkpoint, golden, launch
from repro.trainers.loop.layout import weights_of
from support.runs import HANG, ROOT, Run, needs, planted, run_sh, some
from support.waiting import until

pytestmark = pytest.mark.xdist_group("ports")
DETERMINISTIC = ("params.threads=1", "params.device=cpu")
PORTABLE = ("params.numerics=portable", *DETERMINISTIC)

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """The fingerprint of a run that printed nothing else on stdout, and nothing but its log on stderr."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fingerprint sha256:") and done.stdout.count("\n") == 1, done.stdout
    assert not [line for line in done.stderr.splitlines() if line.startswith(("W", "E", "["))], done.stderr
    return done.stdout.split()[1]


def started(
    framework: str,
    workspace: Path,
    *overrides: str,
    ranks: int = 2,
    of_last: tuple[str, ...] = (),
    hangs: int | None = None,
) -> list[subprocess.Popen]:
    """The ranks of a run, as Slurm or Kubernetes would start them: nobody watches over them all.

    The rank `hangs` takes no step after the tenth.
    """
    port = str(launch.free_port(ranks))
    command = [str(ROOT / "run.sh"), framework, f"--workspace={workspace}", *overrides]
    common = os.environ | {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    running = []
    for rank in range(ranks):
        own = [*command, *(of_last if rank == ranks - 1 else ())]
        env = common | {"RANK": str(rank)} | (planted(framework, "hang:10") if rank == hangs else {})
        running.append(subprocess.Popen(own, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return running


def ended(processes: list[subprocess.Popen]) -> list[tuple[int, str, list[str]]]:
    """Exit code, stdout and the errors on stderr of each, which says nothing else but the log of rank 0."""
    try:
        said = [process.communicate(timeout=HANG) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for _, err in said[1:]:
        assert err.count("\n") <= 1, err
    errors = [[line for line in err.splitlines() if line.startswith("error: ")] for _, err in said]
    return [(process.returncode, out, own) for process, (out, _), own in zip(processes, said, errors, strict=True)]


def first_checkpoint(workspace: Path, framework: str) -> Path:
    return until(lambda: list(workspace.glob(f"model/{framework}/*.safetensors")))[0]


@pytest.mark.slow  # ranks are in the next test, a kill is in test_trainers.py
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_killed_and_resumed_on_half_as_many(framework: str, size: int, run: Run, workspace: Path) -> None:
    needs(framework)
    keys = (*PORTABLE, "params.checkpoint_steps=10")
    victim = random.randrange(size)
    ranks = started(framework, workspace, *keys, "params.max_steps=1000", ranks=size, hangs=victim)
    before = checkpoint.load(first_checkpoint(workspace, framework))
    ranks[victim].kill()
    result = ended(ranks)
    assert before.record.step == 10 and fingerprint(weights_of(before.state)) == golden.read("mnist")["sgd/step-10"]
    for rank, (code, out, errors) in enumerate(result):
        if rank == victim:
            assert code == -signal.SIGKILL
        else:
            assert (code, out, len(errors)) == (1, "", 1), (victim, rank, errors)
            assert f"rank {rank} lost another rank" in errors[0] and "params.resume=auto" in errors[0]
    done = run(framework, *keys, "params.max_steps=100", "params.resume=auto", f"params.ranks={size // 2}")
    assert printed(done) == golden.read("mnist")["sgd/step-100"]


SMALLER_LAST = (*PORTABLE, "data.train_samples=67", "params.n_epochs=1")  # 67 = 2 x 32 + 3, and 2 does not divide 3


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> str:
    """The fingerprint of one process, in any framework."""
    there = next((name for name in FRAMEWORKS if (ROOT / ".venv" / name / "installed").exists()), "pytorch")
    needs(there)
    workspace = tmp_path_factory.mktemp("alone")
    (workspace / "data").symlink_to(data_dir)
    return printed(run_sh(there, *SMALLER_LAST, workspace=workspace))


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch"))
def test_a_last_batch_that_the_ranks_do_not_divide(framework: str, alone: str, run: Run, workspace: Path) -> None:
    assert printed(run(framework, *SMALLER_LAST, "params.num_workers=1", "params.ranks=2")) == alone
    (folder,) = (workspace / "outputs" / framework).iterdir()  # only one rank writes
    assert json.loads((folder / "experiment.json").read_text())["config"]["params"]["ranks"] == 2


@pytest.mark.slow  # test_killed_and_resumed_on_half_as_many has it in portable numerics
@each_framework
def test_deterministic_killed_and_resumed(framework: str, run: Run, workspace: Path) -> None:
    needs(framework)
    keys = (*DETERMINISTIC, "params.checkpoint_steps=2", "params.ranks=2")
    command = [str(ROOT / "run.sh"), framework, f"--workspace={workspace}", *keys, "params.max_steps=100000"]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first_checkpoint(workspace, framework)
    (victim,) = [child for child in children(parent.pid) if "RANK=1" in variables(child)]
    os.kill(victim, signal.SIGKILL)
    out, err = parent.communicate(timeout=HANG)
    assert (parent.returncode, out) == (1, "")
    errors = [line for line in err.splitlines() if "error" in line.lower()]
    assert errors == err.splitlines()[-1:] and "rank 1 was killed by SIGKILL" in errors[0], err

    stopped = checkpoint.newest(workspace / "model" / framework)
    assert stopped is not None
    to_its_end = (*keys, f"params.max_steps={stopped.record.step + 38}")
    resumed = printed(run(framework, *to_its_end, "params.resume=auto"))
    assert printed(run(framework, *to_its_end)) == resumed


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def variables(process: int) -> list[str]:
    return Path(f"/proc/{process}/environ").read_text().split("\0")


@pytest.mark.parametrize(
    ("framework", "key", "said"),
    [
        ("pytorch", "params.learning_rate=0.1", "rank 1 differs from rank 0 in params.learning_rate: 0.1 and 0.01"),
        pytest.param(
            *("tensorflow", "params.resume=auto", "rank 1 differs from rank 0 in params.resume: auto and never"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("jax", "params.seed=1", "rank 1 differs from rank 0 in SHA-256 of batch_order"), marks=pytest.mark.deep
        ),
    ],
)
def test_ranks_that_differ_are_refused(framework: str, key: str, said: str, workspace: Path) -> None:
    needs(framework)
    for code, out, errors in ended(started(framework, workspace, *DETERMINISTIC, of_last=(key,))):
        assert (code, out, len(errors)) == (1, "", 1) and said in errors[0], errors


def test_a_port_in_use(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        env: dict[str, str | None] = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        done = run("jax", *PORTABLE, env=env)  # found before a framework is loaded
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"port {port} cannot be listened on" in done.stderr


def test_a_launcher_that_started_another_number(run: Run) -> None:
    env: dict[str, str | None] = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = run("pytorch", *PORTABLE, "params.ranks=4", env=env)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "params.ranks=4: the launcher started 2" in done.stderr
