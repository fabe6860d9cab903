"""run.sh: what it refuses, what it shuts out, what it hands over."""

import os
import subprocess
from pathlib import Path

import pytest

from support.runs import ROOT
from support.scripts import assert_one_line, call, copy_of_root, run_sh


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_of_root(tmp_path)


def seen(root: Path, *arguments: str, **env: str) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment that Python was started with."""
    done = run_sh(root, *(arguments or ("pytorch", f"--workspace={root / 'work space'}")), **env)
    assert done.returncode == 0, done.stderr
    python = root / ".venv" / "pytorch" / "bin" / "python"
    pairs = Path(f"{python}.environment").read_text().split("\0")
    return Path(f"{python}.arguments").read_text().splitlines(), dict(pair.split("=", 1) for pair in pairs if pair)


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

    def test_the_observer_gets_in_and_nothing_beside_it(self, root: Path) -> None:
        site = ROOT / "repro" / "observe" / "site"
        _, environment = seen(root, PYTHONPATH=f"{site}:/nowhere:", REPRO_OBSERVE="/record")
        assert (environment["PYTHONPATH"], environment["REPRO_OBSERVE"]) == (f"{site}:{root}", "/record")
        assert environment["REPRO_SHUT_OUT_PYTHONPATH"] == f"{site}:/nowhere:"

    @pytest.mark.parametrize(
        ("path", "observe"),
        [("SITE", ""), ("/nowhere:SITE", "/record"), (":SITE", "/record"), ("/nowhere", "/record"), ("", "/record"),
         ("ASK", "/record")],
    )  # fmt: skip
    def test_what_is_not_the_observer_does_not_get_in(self, root: Path, path: str, observe: str) -> None:
        """Without a record to write, not the first in the path, or another sitecustomize.py."""
        folders = {"SITE": ROOT / "repro" / "observe" / "site", "ASK": ROOT / "repro" / "ask" / "listings"}
        for name, folder in folders.items():
            path = path.replace(name, str(folder))
        _, environment = seen(root, PYTHONPATH=path, REPRO_OBSERVE=observe)
        assert environment["PYTHONPATH"] == str(root)

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
