"""requirements/: what install.sh and aarch64.sh refuse, what an interruption leaves, and what the locks hold."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.runs import ROOT
from support.scripts import assert_one_line, call, copy_of_root, run_sh
from support.waiting import until

# uv as install.sh calls it: `uv venv ... FOLDER` makes an environment, `uv pip sync ... LOCK` fills it, or fails.
UV = """#!/bin/sh
for last; do :; done
echo "$*" >>"$0.calls"
case $1 in
  venv) mkdir -p "$last/bin"; touch "$last/bin/python"; chmod +x "$last/bin/python" ;;
  pip) [ -z "$FAIL" ] || exit 1; [ -z "$HANG" ] || { touch "$0.hangs"; exec sleep 1800; } ;;
esac
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_of_root(tmp_path)


class TestInstall:
    @pytest.fixture
    def uv(self, root: Path) -> Path:
        """A root with locks, where uv is complete already and only notes how it is called."""
        for name in ("uv", "build", "pytorch", "jax", "jax-cuda"):
            (root / "requirements" / f"{name}.txt").write_text(f"lock of {name}\n")
        uv = root / ".venv" / "uv" / "bin" / "uv"
        uv.parent.mkdir(parents=True)
        for path, text in ((uv, UV), (uv.with_name("python"), "")):
            path.write_text(text)
            path.chmod(0o755)
        lock = hashlib.sha256((root / "requirements" / "uv.txt").read_bytes()).hexdigest()
        (root / ".venv" / "uv" / "installed").write_text(f"{lock}  -\n")
        return uv

    def install(self, root: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return call([str(root / "requirements" / "install.sh"), *arguments], **env)

    def calls(self, uv: Path) -> list[str]:
        noted = Path(f"{uv}.calls")
        return noted.read_text().splitlines() if noted.exists() else []

    @pytest.mark.parametrize("arguments", [["torch"], ["jax", "numpy"], ["jax mlcube"], [""], ["../x"]])
    def test_unknown_name(self, root: Path, arguments: list[str]) -> None:
        assert_one_line(
            self.install(root, *arguments), 2, f"'{arguments[-1]}'", "pytorch tensorflow jax mlcube sweep dev docs"
        )

    @pytest.mark.parametrize("option", ["--accelerator=tpu", "--accelerator", "--cuda"])
    def test_unknown_option(self, root: Path, option: str) -> None:
        assert_one_line(self.install(root, option, "jax"), 2, f"'{option}'", "--accelerator=cuda")

    def test_nothing_to_do(self, root: Path) -> None:
        assert_one_line(self.install(root), 2, "nothing to install")

    def test_no_python(self, root: Path, uv: Path) -> None:
        tools = root / "tools"
        tools.mkdir()
        for tool in ("bash", "dirname", "sha256sum", "env"):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        for name in ("python3", "python3.11"):  # a Python that says it is older: it gets `-I -c CODE`
            older = "import sys; sys.version_info = (3, 10, 9); exec(sys.argv[1])"
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -c "{older}" "$3"\n')
            (tools / name).chmod(0o755)
        assert_one_line(self.install(root, "jax", PATH=str(tools)), 1, "no Python 3.11", "apt-get install python3")

    def test_python_without_its_venv_module(self, root: Path, uv: Path) -> None:
        shutil.rmtree(root / ".venv" / "uv")
        tools = root / "tools"
        tools.mkdir()
        (tools / "python3.11").write_text('#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n')
        (tools / "python3.11").chmod(0o755)
        done = self.install(root, "jax", PATH=f"{tools}:{os.environ['PATH']}")
        assert_one_line(done, 1, "python3.11", "apt-get install python3-venv")

    def test_a_second_call_does_nothing(self, root: Path, uv: Path) -> None:
        assert self.install(root, "--accelerator=cpu", "jax").returncode == 0
        first = self.calls(uv)
        assert len(first) == 2 and "--require-hashes" in first[1] and first[1].endswith("/jax.txt")
        assert self.install(root, "--accelerator=cpu", "jax").returncode == 0
        assert self.calls(uv) == first

    def test_another_lock_installs_again(self, root: Path, uv: Path) -> None:
        assert self.install(root, "--accelerator=cpu", "jax").returncode == 0
        assert self.install(root, "--accelerator=cuda", "jax").returncode == 0
        assert self.calls(uv)[-1].endswith("/jax-cuda.txt")
        (root / "requirements" / "jax-cuda.txt").write_text("another lock\n")
        assert self.install(root, "--accelerator=cuda", "jax").returncode == 0
        assert len(self.calls(uv)) == 6

    def test_cuda_without_a_lock_of_its_own(self, root: Path, uv: Path) -> None:
        (root / "requirements" / "jax-cuda.txt").unlink()
        assert self.install(root, "--accelerator=cuda", "jax").returncode == 0
        assert self.calls(uv)[-1].endswith("/jax.txt")

    def test_failure_leaves_nothing_that_looks_complete(self, root: Path, uv: Path) -> None:
        done = self.install(root, "pytorch", FAIL="1")
        assert done.returncode == 1
        assert "error: could not install pytorch" in done.stderr
        assert not (root / ".venv" / "pytorch" / "installed").exists()
        assert_one_line(run_sh(root, "pytorch", f"--workspace={root}"), 1, "requirements/install.sh pytorch")

    def test_interruption_leaves_nothing_that_looks_complete(self, root: Path, uv: Path) -> None:
        command = [str(root / "requirements" / "install.sh"), "pytorch"]
        with subprocess.Popen(command, env=os.environ | {"HANG": "1"}, start_new_session=True) as process:
            until(Path(f"{uv}.hangs").exists, process)
            os.killpg(process.pid, 9)
        assert_one_line(run_sh(root, "pytorch", f"--workspace={root}"), 1, "requirements/install.sh pytorch")
        assert self.install(root, "pytorch").returncode == 0
        assert (root / ".venv" / "pytorch" / "installed").exists()


def entries(lock: Path) -> list[str]:
    """The lines `name==version ; marker \\`, each followed by its hashes."""
    return [line for line in lock.read_text().splitlines() if line[:1].isalnum()]


class TestLocks:
    @pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
    def test_names_no_package_index_and_has_a_hash_for_everything(self, lock: Path) -> None:
        text = lock.read_text()
        assert "://" not in text and "--index" not in text and "--extra-index" not in text
        assert entries(lock) and all(entry.endswith(" \\") for entry in entries(lock))
        assert text.count("--hash=sha256:") >= len(entries(lock))

    @pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
    def test_cpu_and_cuda_compute_with_the_same_versions(self, framework: str) -> None:
        """What only one of the two holds is CUDA's."""
        cpu, cuda = (
            {entry.split(" ")[0] for entry in entries(ROOT / "requirements" / name)}
            for name in (f"{framework}.txt", f"{framework}-cuda.txt")
        )
        assert cpu <= cuda
        assert all(name.startswith(("nvidia-", "cuda-", "triton=", "jax-cuda13-")) for name in cuda - cpu), cuda - cpu


class TestAarch64:
    @pytest.mark.parametrize(
        ("arguments", "exit_code", "said"),
        [
            ([], 2, "name one or more of pytorch tensorflow jax"),
            (["pytorch", "mlcube"], 2, "unknown environment 'mlcube'"),
            (["jax"], 1, "requirements/install.sh jax"),
            (["pytorch"], 1, "no qemu-aarch64 on the PATH"),
        ],
    )
    def test_refused(self, root: Path, arguments: list[str], exit_code: int, said: str) -> None:
        shutil.copy(ROOT / "requirements" / "aarch64.sh", root / "requirements")
        tools = root / "tools"
        tools.mkdir()
        for tool in ("bash", "dirname"):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        done = call([str(root / "requirements" / "aarch64.sh"), *arguments], PATH=str(tools))
        assert_one_line(done, exit_code, said)
        assert not (root / ".venv" / "aarch64").exists()


def test_pip_alone_gets_the_lock_of_the_pytorch_trainer() -> None:
    """That of CUDA, which is whole: the other one leaves packages out that torch's own metadata ask for."""
    option, path = (ROOT / "requirements.txt").read_text().split()
    assert option == "-r" and re.search(r"^torch==\S+ \\$", (ROOT / path).read_text(), re.M)
