"""A Python that has imported modules, and runs each script in a process of its own, forked from it.

Arguments: modules. A line of stdin is [FOLDER or null, ARGV, VARIABLES]: the folder that the observer writes into, the script
with its arguments, and its environment's. A line of stdout is [EXIT CODE, STDOUT, STDERR].
"""

import importlib
import json
import os
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO


def run(files: list[BinaryIO], folder: str | None, argv: list[str], variables: dict[str, str]) -> None:
    """The script, as if Python had been started with it."""
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    os.environ.update(variables)
    if folder is not None:
        os.environ["REPRO_OBSERVE"] = folder
        recorder = sys.modules["_repro.observe.recorder"].active
        recorder.folder, recorder.first = folder, os.getpid()
        recorder.mark_loaded()
    sys.argv[:] = argv
    sys.path.insert(0, str(Path(argv[0]).parent))
    runpy.run_path(argv[0], run_name="__main__")


def text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    sys.path.pop(0)  # of this program
    for line in sys.stdin:
        with open(os.devnull, "rb") as nothing, TemporaryFile() as output, TemporaryFile() as errors:
            if not (child := os.fork()):
                run([nothing, output, errors], *json.loads(line))
                break
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(json.dumps([code, text(output), text(errors)]), flush=True)
