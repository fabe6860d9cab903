"""run.sh: which Python it starts, with which arguments, and in which environment."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from repro.commands import commands
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


class TestWithoutEnvironment:
    """The machine's own Python reads the arguments."""

    @pytest.fixture
    def bare(self, root: Path) -> Path:
        shutil.rmtree(root / ".venv")
        return root

    @pytest.mark.parametrize("command", sorted(commands.parsers()))
    def test_help_of_a_command(self, bare: Path, command: str) -> None:
        helped = run_sh(bare, command, "--help")
        assert (helped.returncode, helped.stderr) == (0, "")
        assert helped.stdout == call([sys.executable, "-m", "repro", command, "--help"], PYTHONPATH=str(ROOT)).stdout
        assert f"{command} " in helped.stdout.splitlines()[0]

    def test_help(self, bare: Path) -> None:
        for option in ("--help", "-h"):
            helped = run_sh(bare, option)
            assert (helped.returncode, helped.stderr) == (0, "")
            for command in commands.parsers():
                assert f"\n  {command} " in helped.stdout

    def test_no_arguments(self, bare: Path) -> None:
        done = run_sh(bare)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == run_sh(bare, "--help").stdout

    def test_wrong_usage(self, bare: Path) -> None:
        assert_one_line(run_sh(bare, "pytroch"), 2, "unknown command 'pytroch'; did you mean pytorch?")
        assert_one_line(run_sh(bare, "jax", "--workspce=x"), 2, "did you mean --workspace?")

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            (["jax", "--workspace=."], "jax"),
            (["sweep", "--workspace=."], "sweep"),
            (["download", "--workspace=."], "pytorch"),
            (["verify", "--workspace=."], "pytorch"),
            (["report", "--workspace=."], "pytorch"),
            (["compare", "a", "b"], "pytorch"),
            (["record", "--", "true"], "pytorch"),
        ],
    )
    def test_which_environment_to_make(self, bare: Path, arguments: list[str], name: str) -> None:
        done = run_sh(bare, *arguments)
        assert_one_line(done, 1, f"'{arguments[0]}'", f"{bare}/.venv", f"requirements/install.sh {name}\n")

    def test_packages_of_the_machine_are_not_used(self, bare: Path) -> None:
        packages = sysconfig.get_path("purelib")
        assert_one_line(run_sh(bare, "compare", "a", "b", PYTHONPATH=packages), 1, "requirements/install.sh pytorch")

    def test_an_environment_that_is_not_complete(self, root: Path) -> None:
        (root / ".venv" / "pytorch" / "installed").unlink()
        for task in ("pytorch", "download"):
            assert_one_line(run_sh(root, task, f"--workspace={root}"), 1, "requirements/install.sh pytorch")

    def test_no_python(self, bare: Path, tmp_path: Path) -> None:
        tools = tmp_path / "tools"
        tools.mkdir()
        for tool in ("bash", "dirname", "readlink", "env"):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        assert_one_line(run_sh(bare, "--help", PATH=str(tools)), 1, "no Python 3.11", "requirements/install.sh")


class TestHandOver:
    def test_arguments_as_they_are(self, root: Path) -> None:
        given = ["pytorch", "params.seed=1", f"--workspace={root / 'work space'}", "+a.b=c d", "--debug", "x="]
        arguments, _ = seen(root, *given)
        assert arguments == ["-P", "-s", "-m", "repro", *given]

    def test_a_command_of_ones_own_keeps_its_environment(self, root: Path) -> None:
        for given in (["record", "--", "true"], ["verify", "--", "true"], ["verify", "--mlcube=cube", "--task=a"]):
            arguments, environment = seen(root, *given, XLA_FLAGS="--a", PYTHONPATH="/nowhere")
            assert arguments[:2] == ["-P", "-c"] and arguments[3:] == [str(root), *given]
            assert (environment["XLA_FLAGS"], environment["PYTHONPATH"]) == ("--a", "/nowhere")
            assert "PYTHONHASHSEED" not in environment

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
        }
        assert {name: environment[name] for name in expected} == expected

    def test_download_takes_the_first_environment_there_is(self, root: Path) -> None:
        (root / ".venv" / "pytorch").rename(root / ".venv" / "jax")
        assert run_sh(root, "download", f"--workspace={root}").returncode == 0
        assert "download" in Path(f"{root}/.venv/jax/bin/python.arguments").read_text()

    def test_exit_code_of_python_is_passed_on(self, root: Path) -> None:
        (root / ".venv" / "pytorch" / "bin" / "python").write_text("#!/bin/sh\nexit 3\n")
        assert run_sh(root, "pytorch", f"--workspace={root}").returncode == 3


class TestRemovedVariables:
    LEAKS = (
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONOPTIMIZE",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "GLIBC_TUNABLES",
        "NPROC",
        "PJRT_NPROC",
        "HYDRA_FULL_ERROR",
        "NPY_DISABLE_CPU_FEATURES",
        "TORCH_LOGS",
        "TORCHINDUCTOR_MAX_AUTOTUNE",
        "PYTORCH_NVML_BASED_CUDA_CHECK",
        "ATEN_CPU_CAPABILITY",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_DETERMINISTIC_OPS",
        "KERAS_BACKEND",
        "KERAS_HOME",
        "JAX_ENABLE_X64",
        "JAX_PLATFORMS",
        "XLA_FLAGS",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "MKL_CBWR",
        "MKLDNN_VERBOSE",
        "ONEDNN_MAX_CPU_ISA",
        "DNNL_VERBOSE",
        "OMP_NUM_THREADS",
        "KMP_AFFINITY",
        "GOMP_CPU_AFFINITY",
        "OPENBLAS_CORETYPE",
        "CUBLAS_WORKSPACE_CONFIG",
        "CUBLASLT_LOG_LEVEL",
        "CUDNN_LOGINFO_DBG",
        "CUDA_LAUNCH_BLOCKING",
        "NCCL_ALGO",
        "NVIDIA_TF32_OVERRIDE",
    )

    # Not a folder or library of this machine, so that the shell and the tools before Python are not hurt.
    VALUE = "/nowhere/=a b"

    @pytest.mark.parametrize("name", LEAKS)
    def test_is_moved(self, root: Path, name: str) -> None:
        ours = seen(root)[1].get(name)  # KERAS_HOME and PYTHONPATH have values of run.sh's own
        _, environment = seen(root, **{name: self.VALUE})
        assert environment[f"REPRO_IGNORED_{name}"] == self.VALUE
        assert environment.get(name) == ours

    @pytest.mark.parametrize("variable", ["REPRO_OBSERVE", "REPRO_PORTABLE"])
    def test_what_is_injected_gets_in_and_nothing_beside_it(self, variable: str, root: Path) -> None:
        site = ROOT / "repro" / "inject" / "site"
        _, environment = seen(root, PYTHONPATH=f"{site}:/nowhere:", **{variable: "/record"})
        assert (environment["PYTHONPATH"], environment[variable]) == (f"{site}:{root}", "/record")
        assert environment["REPRO_IGNORED_PYTHONPATH"] == f"{site}:/nowhere:"

    @pytest.mark.parametrize(
        ("path", "observe"),
        [
            ("SITE", ""),
            ("/nowhere:SITE", "/record"),
            (":SITE", "/record"),
            ("/nowhere", "/record"),
            ("", "/record"),
            ("OTHER", "/record"),
        ],
    )
    def test_what_is_not_the_observer_does_not_get_in(self, root: Path, path: str, observe: str) -> None:
        """Without a record to write, not the first in the path, or another sitecustomize.py."""
        (root / "other").mkdir()
        (root / "other" / "sitecustomize.py").touch()
        folders = {"SITE": ROOT / "repro" / "inject" / "site", "OTHER": root / "other"}
        for name, folder in folders.items():
            path = path.replace(name, str(folder))
        _, environment = seen(root, PYTHONPATH=path, REPRO_OBSERVE=observe)
        assert environment["PYTHONPATH"] == str(root)

    def test_a_value_of_several_lines_or_none(self, root: Path) -> None:
        _, environment = seen(root, XLA_FLAGS="--a\n--b", OMP_SCHEDULE="")
        assert environment["REPRO_IGNORED_XLA_FLAGS"] == "--a\n--b"
        assert environment["REPRO_IGNORED_OMP_SCHEDULE"] == ""

    @pytest.mark.parametrize(
        "name",
        [
            "CUDA_VISIBLE_DEVICES",
            "CUDA_DEVICE_ORDER",
            "NVIDIA_VISIBLE_DEVICES",
            "HTTPS_PROXY",
            "SSL_CERT_FILE",
            "TMPDIR",
            "REPRO_IMAGE",
            "APPTAINER_CONTAINER",
            "SLURM_JOB_ID",
            "TZ",
        ],
    )
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
