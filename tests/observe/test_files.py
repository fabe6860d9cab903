"""Files that a process writes, by their names."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from repro.observe.files import NAME
from repro.record import outputs
from support.observed import ended, interpreter, start
from support.runs import HANG

CODE = """
import os, pathlib, shutil, subprocess, sys
pathlib.Path("read").read_text()
os.stat("nobody")
open("written", "w").close(); open("written", "a").close(); open("updated", "r+").close()
os.close(os.open("opened", os.O_WRONLY | os.O_CREAT)); os.close(os.open("read", os.O_RDONLY))
shutil.copy("written", "copied")
pathlib.Path("new").write_text("1"); os.replace("new", "renamed")
os.mkdir("beside"); pathlib.Path("beside/part").write_text("1"); os.rename("beside", "folder")
os.chdir("folder"); pathlib.Path("deep").write_text("1"); os.chdir("..")
subprocess.run([sys.executable, "-c", "open('child', 'w').close()"])
if os.fork() == 0:
    open("forked", "w").close(); os._exit(0)
os.wait()
try:
    open("no/such/folder", "w")
except FileNotFoundError:
    print("raised")
"""


def test_what_python_opens_to_write_or_renames_is_the_process_own(tmp_path: Path) -> None:
    work, folder = tmp_path / "work", tmp_path / "record"
    work.mkdir()
    for name in ("read", "updated", "nobody"):
        (work / name).write_text("1")
    before = outputs.folder(work)
    code = f"import os; os.chdir({str(work)!r}){CODE}"
    process = start([sys.executable, "-c", code], folder)
    assert process.communicate(timeout=HANG) == ("raised\n", "") and process.returncode == 0
    (work / "nobody").write_text("somebody else")
    (work / "folder" / "part").write_text("more")
    changed = outputs.written(before, outputs.folder(work))
    own = {str(Path(name).relative_to(work)) for name in outputs.own(changed, outputs.named(folder))}
    assert own == {"written", "opened", "copied", "renamed", "folder/part", "folder/deep", "child", "forked"}
    assert str(work / "nobody") in changed
    lines = [json.loads(line) for file in (folder / "steps").glob(f"{NAME}*") for line in file.read_text().splitlines()]
    assert str(work / "updated") in lines and not any(name.startswith(str(folder)) for name in lines)


def test_a_file_that_a_shell_opened_for_it(tmp_path: Path) -> None:
    words = ["sh", "-c", f"{shlex.quote(sys.executable)} -c 'print(1)' > {tmp_path}/log"]
    assert ended(start(words, tmp_path / "record")) == ""
    assert str(tmp_path / "log") in outputs.named(tmp_path / "record")


@pytest.mark.parametrize(
    ("framework", "code"),
    [
        ("pytorch", "import torch; torch.save({}, 'file')"),
        ("tensorflow", "import h5py; h5py.File('file', 'w').close(); h5py.File('file').close()"),
    ],
)
def test_what_c_code_opens(framework: str, code: str, tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); {code}"
    process = start([interpreter(framework), "-c", code], tmp_path / "record")
    assert process.communicate(timeout=HANG)[1] == ""
    assert str(tmp_path / "file") in outputs.named(tmp_path / "record")
