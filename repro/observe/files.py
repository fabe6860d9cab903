"""Files that this process writes, by their names.

Python says of each file that it opens, or renames, to whom adds an audit hook; of what C code opens by itself, only the
functions of WRITERS are known. FOLDER/steps/written-PID gets a line of JSON for each. So a file that is not named there
may still be the process' own, but one that is named is.
"""

import functools
import json
import os
import sys
import threading
from typing import Any

from ..inject import imports
from . import recorder

NAME = "written-"  # prefix of the file's name
MOST = 10_000  # the most names that are written down
WRITES = os.O_WRONLY | os.O_RDWR
WRITERS = {
    "torch.serialization": ("_open_zipfile_writer_file.__init__",),
    "safetensors.torch": ("serialize_file",),
    "safetensors.numpy": ("serialize_file",),
    "tensorflow.python.lib.io.file_io": ("rename_v2", "copy_v2"),
}
"""Functions by module that take the name of a file, which C code writes, among their first arguments."""
OPENERS = {
    "h5py._hl.files": ("File.__init__",),
    "tensorflow.python.lib.io.file_io": ("FileIO.__init__",),
}
"""Functions that take a mode after the name of a file; without one they read."""
RENAMED = ("os.rename", "os.link")

written: set[str] = set()
local = threading.local()


def start() -> None:
    sys.addaudithook(_audit)
    for table, takes_mode in ((WRITERS, False), (OPENERS, True)):
        for module, names in table.items():
            imports.finder.when_imported(module, functools.partial(_watch, names, takes_mode))
    for descriptor in (0, 1, 2):  # as when a shell redirects
        _add_descriptor(descriptor)


def _audit(event: str, arguments: Any) -> None:
    """Notes files that are written or renamed. Python calls it for much else, which an error would end."""
    try:
        if event == "open":
            path, mode, flags = arguments
            if flags & WRITES if mode is None else _writes(mode):
                _add(path)
        elif event in RENAMED:
            _add(arguments[1])
    except Exception:
        pass


def _writes(mode: str) -> bool:
    return not {*"wax+"}.isdisjoint(mode)


def _watch(names: Any, takes_mode: bool, module: Any) -> None:
    for name in names:
        owner, _, attribute = name.rpartition(".")
        holder = getattr(module, owner, None) if owner else module
        function = getattr(holder, attribute, None)
        if function is not None:
            setattr(holder, attribute, _named(function, takes_mode))


def _named(function: Any, takes_mode: bool) -> Any:
    @functools.wraps(function)
    def watched(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        try:
            if not takes_mode:
                _add_names((*arguments[:3], *options.values()))
            elif _writes(str(options.get("mode", (*arguments, "", "", "")[2]))):
                _add_names((*arguments[:2], options.get("name")))
        except Exception:
            pass
        return result

    return watched


def _add_names(values: Any) -> None:
    for value in values:
        if isinstance(value, (str, bytes, os.PathLike)):
            _add(value)


def _add_descriptor(descriptor: int) -> None:
    try:
        path = f"/proc/self/fd/{descriptor}"
        if os.stat(path).st_mode & 0o170000 == 0o100000:
            _add(os.readlink(path))
    except OSError:
        pass


def _add(name: Any) -> None:
    """Writes a name down, once; nothing of ours, and no descriptor."""
    active = recorder.active
    if active is None or isinstance(name, int) or getattr(local, "busy", False):
        return
    path = os.path.abspath(os.fsdecode(name))
    if path in written or len(written) >= MOST or path.startswith(active.folder + os.sep):
        return
    written.add(path)
    local.busy = True
    try:
        with open(os.path.join(active.folder, "steps", f"{NAME}{os.getpid()}"), "ab", buffering=0) as file:
            file.write(json.dumps(path).encode() + b"\n")
    finally:
        local.busy = False
