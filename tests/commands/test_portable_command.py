"""`repro portable`: the command runs as it stands, and a line at its end says what was computed."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import program
from support.portable import STUB, Done, ended, started
from support.portable import tree as tree
from support.runs import HANG

Portable = Callable[..., Done]


@pytest.fixture
def portable(tree: Path, tmp_path: Path) -> Portable:
    """Runs `repro portable OPTIONS -- python CODE`."""

    def run(code: str, *options: str, python: tuple[str, ...] = (), path: str = "", cwd: Path = tmp_path) -> Done:
        words = ("portable", *options, "--", sys.executable, *python, "-c", code)
        return ended(started(tree, *words, path=path, cwd=cwd), "read")

    return run


def test_input_output_and_exit_code_are_the_commands_own(portable: Portable) -> None:
    code = "import sys, torch; torch.computed('mm'); print(input(), torch.precision); sys.stderr.write('said\\n'); sys.exit(7)"
    done = portable(code, "--precision=highest", cwd=Path("/proc"))  # a folder that nobody can write into
    assert (done.returncode, done.stdout) == (7, "read highest\n")
    assert done.stderr == "said\nrepro portable: 1 operation of 1 kind (PyTorch 2.15.0)\n"


def test_what_is_let_through_is_named(portable: Portable) -> None:
    done = portable("import torch; torch.computed('svd'); [torch.computed('mm') for _ in range(1234)]", "--allow=svd")
    assert done.stderr == "repro portable: 1,234 operations of 1 kind (PyTorch 2.15.0); run natively: svd\n"


def test_a_program_has_one_number_of_cores_before_it_imports_a_framework(portable: Portable) -> None:
    code = "import os, psutil; print(os.cpu_count(), len(os.sched_getaffinity(0)), psutil.cpu_count(logical=False))"
    assert portable(code).stdout == "4 4 4\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_are_counted(method: str, tree: Path) -> None:
    done = ended(started(tree, "portable", "--", sys.executable, str(STUB / "workers.py"), method))
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert done.stderr == "repro portable: 12 operations of 3 kinds (PyTorch 2.15.0, 2 processes)\n"


def test_a_program_that_changes_its_surroundings(portable: Portable) -> None:
    code = "import os; os.environ.clear(); os.chdir('/'); import torch; torch.computed('svd'); os.chdir('/proc')"
    assert portable(code, "--allow=svd").stderr.endswith("(PyTorch 2.15.0); run natively: svd\n")


def test_a_process_that_is_killed(portable: Portable) -> None:
    done = portable("import os, torch; torch.computed('mm'); os.kill(os.getpid(), 9)")
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stderr.endswith(
        "0 operations of 0 kinds (PyTorch 2.15.0); not counted: those of a process that was killed\n"
    )


def test_a_signal_goes_to_the_command(tree: Path) -> None:
    code = (
        "import signal, sys, time, torch\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        f"torch.computed('mm'); print(flush=True); time.sleep({HANG})"
    )
    process = started(tree, "portable", "--", sys.executable, "-c", code)
    assert process.stdout is not None and process.stdout.readline() == "\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=HANG)[1] == "repro portable: 1 operation of 1 kind (PyTorch 2.15.0)\n"
    assert process.returncode == 5


def test_a_container(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "docker", (STUB / "docker.py").read_text())
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    code = f"import sys; sys.path.insert(0, {str(STUB)!r}); import torch; torch.computed('svd'); print(torch.library)"
    inside = ("docker", "run", "image", sys.executable, "-c", code)
    done = ended(started(tree, "portable", "--allow=svd", "--", *inside))
    assert done.stdout == "_repro.portable.modes.pytorch\n"
    assert done.stderr == "repro portable: 0 operations of 0 kinds (PyTorch 2.15.0); run natively: svd\n"


# --- where nothing is portable --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_ignores_it_is_reported(option: str, portable: Portable) -> None:
    done = portable("print('done')", python=(option,))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "NOTHING WAS PORTABLE: no Python process of the command loaded them (python -I, -E and -S" in done.stderr


def test_a_program_without_a_framework(portable: Portable) -> None:
    assert (
        portable("").stderr == "repro portable: NOTHING WAS PORTABLE: no process imported PyTorch, TensorFlow or JAX\n"
    )


def test_a_program_with_two_frameworks(portable: Portable) -> None:
    code = "import jax, torch; torch.computed('mm'); torch.computed('svd'); jax.computed('dot'); jax.computed('eigh')"
    done = portable(code, "--allow=pytorch:svd", "--allow=jax:eigh")
    assert done.stderr == (
        "repro portable: 1 operation of 1 kind (PyTorch 2.15.0); 1 operation of 1 kind (JAX 0.10.2); "
        "run natively: eigh, svd\n"
    )


@pytest.mark.parametrize(
    ("code", "options", "why"),
    [
        (
            "import sys; sys.version_info = (3, 10, 2)",
            (),
            "Python 3.10 is too old for them; run the command with Python 3.11",
        ),
        ("", ("--allow=svdd",), "no operation 'svdd' did you mean svd?"),
        ("import sys; sys.modules['collections'] = None", (), "import of collections halted"),
        ("import sys; sys.modules['numpy'] = None", (), "NumPy is not installed in this environment; remedy: pip"),
    ],
)
def test_a_process_in_which_they_cannot_be_switched_on_ends(
    code: str, options: tuple[str, ...], why: str, portable: Portable
) -> None:
    done = portable(f"{code}\nprint('before')\ntry: import torch\nfinally: print('after')", *options)
    ended, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert ended.startswith("repro portable: this process ends, ") and why in ended
    assert "NOTHING WAS PORTABLE: they could not be enabled" in last


def test_a_name_that_no_operation_can_have(portable: Portable) -> None:
    done = portable("", "--allow=a b")
    assert done.returncode == 2 and "--allow 'a b': must be the name of an operation" in done.stderr


def test_llvmlite_is_missed_once(portable: Portable) -> None:
    code = "import os, sys; sys.modules['llvmlite'] = None; child = os.fork(); import torch; child and os.wait()"
    done = portable(code)
    assert done.stderr.splitlines()[0].endswith("so portable numerics are slow; remedy: pip install llvmlite")
    assert len(done.stderr.splitlines()) == 2


# --- a program with files of the same names -------------------------------------------------------------------------


def test_a_sitecustomize_of_ones_own_still_runs(portable: Portable, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import torch; torch.computed('mm'); MINE = 7")
    done = portable("import sys; print(sys.modules['sitecustomize'].MINE, sys.path)", path=str(tmp_path))
    assert done.stdout.startswith("7 ") and "inject" not in done.stdout
    assert done.stderr == "repro portable: 1 operation of 1 kind (PyTorch 2.15.0)\n"


MINE = "import repro; print(repro.MINE, repro.errors)"


@pytest.mark.parametrize(
    "code",
    [
        f"{MINE}; import torch; torch.computed('mm')",
        f"import torch; torch.computed('mm'); {MINE}",
        f"import sys; sys.path.remove(HERE); import torch; sys.path.insert(0, HERE); torch.computed('mm'); {MINE}",
    ],
)
def test_a_package_of_ones_own_of_the_same_name(code: str, portable: Portable, tmp_path: Path) -> None:
    """Before PyTorch is imported, afterwards, and where it can be imported only then."""
    (tmp_path / "repro").mkdir()
    (tmp_path / "repro" / "__init__.py").write_text("MINE = 7; errors = 8")
    done = portable(f"HERE = {str(tmp_path)!r}\n{code}\nprint(torch.library)", path=str(tmp_path))
    assert done.stdout == "7 8\n_repro.portable.modes.pytorch\n"
    assert done.stderr == "repro portable: 1 operation of 1 kind (PyTorch 2.15.0)\n"


def test_a_program_that_uses_the_package_has_one_copy(portable: Portable, tree: Path) -> None:
    code = "import torch, repro.portable.modes.pytorch as p; torch.computed('mm'); print(torch.library, p.counted())"
    done = portable(code, path=str(tree))
    assert done.stdout == "repro.portable.modes.pytorch {'operations': {'mm': 1}, 'allowed': {}}\n"


def test_the_package_is_no_module_of_the_program(portable: Portable) -> None:
    done = portable("import torch\ntry: import repro\nexcept ImportError: print('none')")
    assert done.stdout == "none\n"
