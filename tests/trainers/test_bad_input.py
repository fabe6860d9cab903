"""Whatever is wrong with what a run is given: one clear line, the right exit code, and nothing existing harmed."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from repro.frameworks import FRAMEWORKS
from repro.trainers.loop import checkpoint
from support.runs import Run, some

pytestmark = pytest.mark.spread

SHORT = ("params.device=cpu", "params.max_steps=2", "params.batch_size_test=10000")


def refused(done: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """The task ended with this exit code and one line that says all of these."""
    assert done.returncode == code, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert [part for part in said if part not in line] == [], line
    assert "Traceback" not in done.stderr + done.stdout
    assert "fingerprint" not in done.stdout


def tree(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by its place; what a symbolic link points to belongs to another folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- command line and configuration ---------------------------------------------------------------------------------


def test_unknown_task(run_here: Run, workspace: Path):
    refused(run_here("keras"), 2, "'keras'", "download, pytorch, tensorflow, jax")
    assert list(tree(workspace)) == ["train.yaml"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("colour=red", "the keys are params.seed, params.n_epochs"),
        ("params.sed=1", "did you mean params.seed?"),
        ("params.n_epochs=0", "must be at least 1"),
        ("params.learning_rate=-1", "above 0"),
        ("params.n_epochs=many", "could not be converted to Integer"),
        ("params.optimizer=adamw", "must be one of sgd, adam"),
        ("params.resume=a=b", "in quotes"),
        ("params.numerics=exact", "must be one of fast, deterministic, portable"),
    ],
)
def test_wrong_override(run_here: Run, workspace: Path, override: str, said: str):
    key, value = override.split("=", 1)
    refused(run_here("pytorch", override), 2, key, value, said)
    assert list(tree(workspace)) == ["train.yaml"]


@pytest.mark.parametrize(
    ("text", "said"), [("params: {seed: 1\n", "line 2"), ("params: {sed: 1}\n", "did you mean params.seed?")]
)
def test_wrong_train_yaml(run_here: Run, workspace: Path, text: str, said: str):
    (workspace / "train.yaml").write_text(text)
    refused(run_here("pytorch"), 2, "train.yaml", said)
    assert (workspace / "train.yaml").read_text() == text


# --- data -----------------------------------------------------------------------------------------------------------

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:5000],
    "bit-flipped": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
}


@pytest.fixture
def labels(workspace: Path, data_dir: Path) -> Path:
    """A file of the data set that a test may damage: a copy, beside links to the other three."""
    (workspace / "data").unlink()
    raw = workspace / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for source in (data_dir / "MNIST" / "raw").glob("*-ubyte"):
        (raw / source.name).symlink_to(source)
    path = raw / "t10k-labels-idx1-ubyte"
    path.unlink()
    shutil.copy(data_dir / "MNIST" / "raw" / path.name, path)
    return path


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_data(run: Run, workspace: Path, labels: Path, damage: str):
    labels.write_bytes(DAMAGES[damage](labels.read_bytes()))
    before = tree(workspace)
    refused(run("pytorch", *SHORT), 1, str(labels), "SHA-256", "remove it and run the task `download` again")
    assert tree(workspace) == before


def test_missing_data(run: Run, workspace: Path, labels: Path):
    labels.unlink()
    refused(run("pytorch", *SHORT), 1, str(labels), "No such file", "run the task `download` first")


def test_no_network(run: Run, workspace: Path, labels: Path):
    labels.unlink()
    before = tree(workspace)
    nowhere = "http://127.0.0.1:9"
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere)
    npm = {"npm_config_registry": nowhere, "npm_config_fetch_retries": "0"}
    done = run("download", env=proxies | npm | {"no_proxy": None, "NO_PROXY": None})
    if "no complete environment" in done.stderr:
        pytest.skip(done.stderr.strip())
    refused(done, 1, labels.name, "no source has", "by hand", "data.mirrors")
    assert tree(workspace) == before


# --- device ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", deep=["tensorflow", "jax"]))
def test_no_gpu(run: Run, workspace: Path, framework: str):
    done = run(framework, "params.device=gpu", "params.max_steps=2", env={"CUDA_VISIBLE_DEVICES": ""})
    refused(done, 2, "params.device=gpu", "use auto or cpu")
    assert not (workspace / "model").exists()


# --- workspace ------------------------------------------------------------------------------------------------------


def mount(*arguments: object) -> None:
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this test mounts a file system, which is not allowed here: {done.stderr.strip()}")


@pytest.fixture
def mounted() -> Iterator[list[Path]]:
    """Mount points that are cleared after the test."""
    points: list[Path] = []
    yield points
    for point in points:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def test_workspace_with_spaces_works(run: Run, workspace: Path):
    renamed = workspace.rename(workspace.with_name("my work  space"))
    done = run("pytorch", *SHORT, workspace=renamed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("fingerprint sha256:")
    assert list((renamed / "model" / "pytorch").glob("*.safetensors"))


def read_only(folder: Path, mounted: list[Path]) -> None:
    mount("--bind", folder, folder)
    mounted.append(folder)
    mount("-o", "remount,bind,ro", folder)


def test_read_only_workspace(run: Run, workspace: Path, mounted: list[Path]):
    read_only(workspace, mounted)
    refused(run("pytorch", *SHORT), 1, f"{workspace}/outputs", "Read-only file system", "writable")


def test_read_only_workspace_for_a_download(run: Run, workspace: Path, labels: Path, mounted: list[Path]):
    labels.unlink()
    read_only(workspace, mounted)
    done = run("download")
    if "no complete environment" in done.stderr:
        pytest.skip(done.stderr.strip())
    refused(done, 1, str(labels.parent), "Read-only file system", "writable")


def test_read_only_model_folder(run: Run, workspace: Path, mounted: list[Path]):
    (workspace / "model").mkdir()
    read_only(workspace / "model", mounted)
    refused(run("pytorch", *SHORT), 1, f"{workspace}/model", "Read-only file system", "writable")


@pytest.mark.parametrize("room", some([0, 40_000], 40_000, deep=[0]))
def test_full_workspace(run: Run, workspace: Path, good: Path, mounted: list[Path], room: int):
    """Full from the start, or from the checkpoint on; the last good one stays."""
    small = workspace / "small"
    small.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", small)
    mounted.append(small)
    for name in ("train.yaml", "data"):
        shutil.copy(workspace / name, small / name, follow_symlinks=False)
    (small / "model" / "pytorch").mkdir(parents=True)
    shutil.copy(good, small / "model" / "pytorch")
    free = shutil.disk_usage(small).free
    (small / "filler").write_bytes(bytes(free - room))
    before = tree(small)
    done = run("pytorch", *SHORT, "params.max_steps=4", "params.resume=auto", workspace=small)
    refused(done, 1, str(small), "No space left on device", "free space")
    assert before.items() <= tree(small).items()
    newest = checkpoint.newest(small / "model" / "pytorch")
    assert newest is not None
    assert newest.record.step == 2


# --- checkpoints ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """The checkpoint of two steps, once it is made."""
    return {}


@pytest.fixture
def good(run: Run, workspace: Path, tmp_path: Path, made: dict[str, bytes]) -> Path:
    """A good checkpoint, outside of the workspace."""
    if not made:
        done = run("pytorch", *SHORT)
        assert done.returncode == 0, done.stderr
        (path,) = (workspace / "model" / "pytorch").glob("*.safetensors")
        made[path.name] = path.read_bytes()
        shutil.rmtree(workspace / "model")
        shutil.rmtree(workspace / "outputs")
    ((name, content),) = made.items()
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def foreign(path: Path) -> None:
    save_file({"weight": np.zeros(3, np.float32)}, str(path), metadata={"format": "pt"})


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-1000]), "cannot be read"),
    "tampered": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x77"), "is damaged"),
    "foreign": (foreign, "was not written by this project"),
    "text": (lambda path: path.write_text("not a checkpoint"), "cannot be read"),
    "missing": (lambda path: path.unlink(), "does not exist"),
}


@pytest.mark.parametrize(
    "case",
    some(
        [*((harm, "PATH") for harm in HARMS), ("truncated", "auto"), ("foreign", "auto")],
        *(("tampered", "PATH"), ("missing", "PATH"), ("truncated", "auto")),
        deep=[("truncated", "PATH"), ("foreign", "PATH"), ("text", "PATH"), ("foreign", "auto")],
    ),
)
def test_bad_checkpoint(run: Run, workspace: Path, good: Path, case: tuple[str, str]):
    harm, resume = case
    folder = workspace / "model" / "pytorch"
    folder.mkdir(parents=True)
    shutil.copy(good, folder / "epoch_0000.safetensors")
    path = folder / good.name
    shutil.copy(good, path)
    damage, said = HARMS[harm]
    damage(path)
    before = tree(folder)
    done = run("pytorch", *SHORT, f"params.resume={path if resume == 'PATH' else 'auto'}")
    refused(done, 1, str(path), said, "params.resume=never")
    assert tree(folder) == before


def test_checkpoint_of_another_seed(run: Run, workspace: Path, good: Path):
    before = tree(good.parent)
    done = run("pytorch", *SHORT, f"params.resume={good}", "params.seed=1")
    refused(done, 2, "params.seed=0", "params.seed=1", str(good))
    assert before.items() <= tree(good.parent).items()
    assert not (workspace / "model").exists()
