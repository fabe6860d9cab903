"""run.sh and requirements/install.sh: what they refuse, what they shut out, what they leave behind when interrupted.

The scripts run in a copy of the repository's root, with a stand-in for the environment's Python that shows what it is
given.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" >"$0.arguments"
env --null >"$0.environment"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the root with both scripts, and a PyTorch environment that only shows what it is given."""
    root = tmp_path / "a root"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "run.sh", root)
    shutil.copy(ROOT / "requirements" / "install.sh", root / "requirements")
    environment = root / ".venv" / "pytorch"
    (environment / "bin").mkdir(parents=True)
    (environment / "installed").touch()
    python = environment / "bin" / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    (root / "work space").mkdir()
    return root


def call(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    minimal = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    return subprocess.run(command, env=minimal | env, capture_output=True, text=True, timeout=60, check=False)


def run_sh(root: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return call([str(root / "run.sh"), *arguments], **env)


def seen(root: Path, *arguments: str, **env: str) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment that Python was started with."""
    done = run_sh(root, *(arguments or ("pytorch", f"--workspace={root / 'work space'}")), **env)
    assert done.returncode == 0, done.stderr
    python = root / ".venv" / "pytorch" / "bin" / "python"
    pairs = Path(f"{python}.environment").read_text().split("\0")
    return Path(f"{python}.arguments").read_text().splitlines(), dict(pair.split("=", 1) for pair in pairs if pair)


def assert_one_line(done: subprocess.CompletedProcess[str], exit_code: int, *parts: str) -> None:
    assert done.returncode == exit_code, done
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr


class TestUsage:
    def test_help_goes_to_stdout(self, root: Path) -> None:
        for option in ("--help", "-h"):
            done = run_sh(root, option)
            assert (done.returncode, done.stderr) == (0, "")
            for task in ("download", "pytorch", "tensorflow", "jax", "report"):
                assert task in done.stdout

    def test_without_arguments_the_usage_goes_to_stderr(self, root: Path) -> None:
        done = run_sh(root)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--workspace=DIR" in done.stderr

    @pytest.mark.parametrize("task", ["pytroch", "", "pytorch tensorflow", "--workspace=.", "-P"])
    def test_unknown_task(self, root: Path, task: str) -> None:
        assert_one_line(run_sh(root, task, "--workspace=."), 2, f"'{task}'", "download pytorch tensorflow jax")

    @pytest.mark.parametrize("argument", ["--workspce=x", "--epochs=3", "-x", "--"])
    def test_unknown_option(self, root: Path, argument: str) -> None:
        assert_one_line(run_sh(root, "pytorch", "--workspace=.", argument), 2, f"'{argument}'", "--debug")

    @pytest.mark.parametrize("argument", ["params.seed", "", "=3", "fast"])
    def test_no_key_value(self, root: Path, argument: str) -> None:
        assert_one_line(run_sh(root, "pytorch", "--workspace=.", argument), 2, f"'{argument}'", "KEY=VALUE")

    @pytest.mark.parametrize("arguments", [[], ["--workspace="], ["--workspace"], ["params.seed=1"]])
    def test_no_workspace(self, root: Path, arguments: list[str]) -> None:
        assert_one_line(run_sh(root, "pytorch", *arguments), 2, "--workspace=DIR")

    def test_workspace_that_is_no_folder(self, root: Path) -> None:
        for name in ("missing", "run.sh"):
            path = root / name
            assert_one_line(run_sh(root, "pytorch", f"--workspace={path}"), 2, f"'{path}'", "not a folder")

    def test_missing_environment(self, root: Path) -> None:
        done = run_sh(root, "jax", f"--workspace={root}")
        assert_one_line(done, 1, "'jax'", f"{root}/.venv", "requirements/install.sh jax")

    def test_environment_that_is_not_complete(self, root: Path) -> None:
        (root / ".venv" / "pytorch" / "installed").unlink()
        for task in ("pytorch", "download"):
            assert_one_line(run_sh(root, task, f"--workspace={root}"), 1, "requirements/install.sh pytorch")


class TestHandOver:
    def test_arguments(self, root: Path) -> None:
        workspace = root / "work space"
        given = ["pytorch", "params.seed=1", f"--workspace={workspace}", "+a.b=c d", "--debug", "x="]
        arguments, _ = seen(root, *given)
        start = ["-P", "-s", "-m", "repro", "pytorch", f"--workspace={workspace}"]
        assert arguments == [*start, "params.seed=1", "+a.b=c d", "--debug", "x="]

    def test_a_report_takes_files(self, root: Path) -> None:
        workspace = root / "work space"
        arguments, _ = seen(root, "report", "my results.json", f"--workspace={workspace}", "a=b.json")
        assert arguments[4:] == ["report", f"--workspace={workspace}", "my results.json", "a=b.json"]

    def test_workspace_becomes_absolute(self, root: Path) -> None:
        done = subprocess.run([root / "run.sh", "pytorch", "--workspace=work space"], cwd=root, check=False)
        assert done.returncode == 0
        arguments = Path(f"{root}/.venv/pytorch/bin/python.arguments").read_text().splitlines()
        assert arguments[-1] == f"--workspace={root / 'work space'}"

    def test_cdpath_does_not_lead_astray(self, root: Path) -> None:
        (root / "elsewhere" / "work space").mkdir(parents=True)
        env = {**os.environ, "CDPATH": str(root / "elsewhere")}
        subprocess.run([root / "run.sh", "pytorch", "--workspace=work space"], cwd=root, env=env, check=True)
        arguments = Path(f"{root}/.venv/pytorch/bin/python.arguments").read_text().splitlines()
        assert arguments[-1] == f"--workspace={root / 'work space'}"

    def test_through_a_symbolic_link(self, root: Path, tmp_path: Path) -> None:
        link = tmp_path / "repro"
        link.symlink_to(root / "run.sh")
        assert call([str(link), "pytorch", f"--workspace={root}"]).returncode == 0

    def test_what_is_set(self, root: Path) -> None:
        _, environment = seen(root)
        expected = {
            "PYTHONPATH": str(root),
            "PYTHONNOUSERSITE": "1",
            "PYTHONHASHSEED": "0",
            "LC_ALL": "C.UTF-8",
            "KERAS_HOME": "/dev/null",
            "WORKSPACE_PATH": str(root / "work space"),
        }
        assert {name: environment[name] for name in expected} == expected

    def test_download_takes_the_first_environment_there_is(self, root: Path) -> None:
        (root / ".venv" / "pytorch").rename(root / ".venv" / "jax")
        assert run_sh(root, "download", f"--workspace={root}").returncode == 0
        assert "download" in Path(f"{root}/.venv/jax/bin/python.arguments").read_text()

    def test_exit_code_of_python_is_passed_on(self, root: Path) -> None:
        (root / ".venv" / "pytorch" / "bin" / "python").write_text("#!/bin/sh\nexit 3\n")
        assert run_sh(root, "pytorch", f"--workspace={root}").returncode == 3


class TestShutOut:
    LEAKS = (
        "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONOPTIMIZE", "LD_PRELOAD", "LD_LIBRARY_PATH",
        "GLIBC_TUNABLES", "NPROC", "PJRT_NPROC", "HYDRA_FULL_ERROR", "NPY_DISABLE_CPU_FEATURES", "TORCH_LOGS",
        "TORCHINDUCTOR_MAX_AUTOTUNE", "PYTORCH_NVML_BASED_CUDA_CHECK", "ATEN_CPU_CAPABILITY", "TF_ENABLE_ONEDNN_OPTS",
        "TF_DETERMINISTIC_OPS", "KERAS_BACKEND", "KERAS_HOME", "JAX_ENABLE_X64", "JAX_PLATFORMS", "XLA_FLAGS",
        "XLA_PYTHON_CLIENT_PREALLOCATE", "MKL_CBWR", "MKLDNN_VERBOSE", "ONEDNN_MAX_CPU_ISA", "DNNL_VERBOSE",
        "OMP_NUM_THREADS", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "OPENBLAS_CORETYPE", "CUBLAS_WORKSPACE_CONFIG",
        "CUBLASLT_LOG_LEVEL", "CUDNN_LOGINFO_DBG", "CUDA_LAUNCH_BLOCKING", "NCCL_ALGO", "NVIDIA_TF32_OVERRIDE",
    )  # fmt: skip

    # Not a folder or library of this machine, so that the shell and the tools before Python are not hurt.
    VALUE = "/nowhere/=a b"

    @pytest.mark.parametrize("name", LEAKS)
    def test_is_moved(self, root: Path, name: str) -> None:
        ours = seen(root)[1].get(name)  # KERAS_HOME and PYTHONPATH have values of run.sh's own
        _, environment = seen(root, **{name: self.VALUE})
        assert environment[f"REPRO_SHUT_OUT_{name}"] == self.VALUE
        assert environment.get(name) == ours

    def test_a_value_of_several_lines_or_none(self, root: Path) -> None:
        _, environment = seen(root, XLA_FLAGS="--a\n--b", OMP_SCHEDULE="")
        assert environment["REPRO_SHUT_OUT_XLA_FLAGS"] == "--a\n--b"
        assert environment["REPRO_SHUT_OUT_OMP_SCHEDULE"] == ""

    @pytest.mark.parametrize(
        "name",
        ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "HTTPS_PROXY", "SSL_CERT_FILE",
         "TMPDIR", "REPRO_IMAGE", "APPTAINER_CONTAINER", "SLURM_JOB_ID", "TZ"],
    )  # fmt: skip
    def test_stays(self, root: Path, tmp_path: Path, name: str) -> None:
        _, environment = seen(root, **{name: str(tmp_path)})
        assert environment[name] == str(tmp_path)


class TestHome:
    def test_of_the_user_stays(self, root: Path, tmp_path: Path) -> None:
        _, environment = seen(root, HOME=str(tmp_path), XDG_CACHE_HOME="/x")
        assert (environment["HOME"], environment["XDG_CACHE_HOME"]) == (str(tmp_path), "/x")

    @pytest.mark.parametrize("home", ["/", "", "/proc/self", "/nowhere"])
    def test_that_cannot_be_written_is_replaced(self, root: Path, tmp_path: Path, home: str) -> None:
        _, environment = seen(root, HOME=home, TMPDIR=str(tmp_path), XDG_CACHE_HOME="/nowhere")
        replaced = Path(environment["HOME"])
        assert replaced.parent == tmp_path
        assert replaced.stat().st_mode & 0o777 == 0o700
        assert "XDG_CACHE_HOME" not in environment

    def test_without_any_place_there_is_a_clear_error(self, root: Path) -> None:
        done = run_sh(root, "pytorch", f"--workspace={root}", HOME="/nowhere", TMPDIR="/proc")
        assert_one_line(done, 1, "HOME=/nowhere", "TMPDIR")

    def test_of_another_user_is_not_trusted(self, root: Path, tmp_path: Path) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can give a folder to another user")
        foreign = tmp_path / "repro-home-0"
        foreign.mkdir()
        os.chown(foreign, 4242, 4242)
        done = run_sh(root, "pytorch", f"--workspace={root}", HOME="/nowhere", TMPDIR=str(tmp_path))
        assert_one_line(done, 1, "HOME=/nowhere")


# uv as install.sh calls it: `uv venv ... FOLDER` makes an environment, `uv pip sync ... LOCK` fills it, or fails.
UV = """#!/bin/sh
for last; do :; done
echo "$*" >>"$0.calls"
case $1 in
  venv) mkdir -p "$last/bin"; touch "$last/bin/python"; chmod +x "$last/bin/python" ;;
  pip) [ -z "$FAIL" ] || exit 1; [ -z "$HANG" ] || { touch "$0.hangs"; exec sleep 60; } ;;
esac
"""


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
            self.install(root, *arguments), 2, f"'{arguments[-1]}'", "pytorch tensorflow jax mlcube sweep dev"
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

    def test_a_second_call_does_nothing_and_is_quick(self, root: Path, uv: Path) -> None:
        assert self.install(root, "--accelerator=cpu", "jax").returncode == 0
        first = self.calls(uv)
        assert len(first) == 2 and "--require-hashes" in first[1] and first[1].endswith("/jax.txt")
        start = time.perf_counter()
        assert self.install(root, "--accelerator=cpu", "jax").returncode == 0
        assert time.perf_counter() - start < 0.5
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
            while not Path(f"{uv}.hangs").exists():
                assert process.poll() is None
                time.sleep(0.01)
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
