"""Utilities of the tests of one's own commands: records made by hand, the scripts, and `repro` as a user calls it."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from repro import __main__
from repro.containers.command_line import Container, find
from repro.record import lines, record
from support.runs import HANG, PROGRAMS, ROOT

SCRIPTS = PROGRAMS / "faults"
REPRO = [sys.executable, "-c", "from repro.__main__ import command; command()"]

Steps = dict[int, dict[str, dict[str, str]]]


def script(name: str, *options: str) -> list[str]:
    """The command that runs a script of tests/programs/faults."""
    return [sys.executable, str(SCRIPTS / f"{name}.py"), *options]


def environment() -> dict[str, str]:
    """This one, with the repository on Python's path."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def repro(*words: str, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """`repro WORDS` in a folder, to its end, with more variables."""
    return subprocess.run(
        [*REPRO, *words],
        cwd=cwd,
        env=environment() | variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def sha(value: object) -> str:
    """A SHA-256 of anything, the same for the same."""
    return hashlib.sha256(repr(value).encode()).hexdigest()


def straight(steps: int = 4, **changed: Any) -> Steps:
    """Hashes of a run whose channels hold their step's number; `changed` by channel, `_` for a space, replaces some.

    `optimizer={2: "other"}` is another optimizer state after step 2.
    """
    results: Steps = {
        0: {"initial weights": {"w": sha(("weights", 0))}, "generator": {"python": sha(("generator", 0))}}
    }
    for step in range(1, steps + 1):
        results[step] = {
            channel: {name: sha((channel, step))}
            for channel, name in (
                ("batch", "0"),
                ("generator", "python"),
                ("gradients", "w"),
                ("optimizer", "w.momentum"),
                ("weights", "w"),
                ("buffers", "mean"),
            )
        }
    for channel, values in changed.items():
        for step, value in values.items():
            hashes = results[step][channel.replace("_", " ")]
            hashes.update(dict.fromkeys(hashes, value if len(str(value)) == 64 else sha(value)))
    return results


def resumed(after: int, steps: int = 4, **changed: Any) -> Steps:
    """Hashes of a run that goes on after a step of straight(); `changed` counts the steps of this run."""
    whole = straight(steps)
    own: Steps = {0: {"initial weights": whole[after]["weights"], "generator": whole[0]["generator"]}}
    own |= {step - after: whole[step] for step in range(after + 1, steps + 1)}
    for channel, values in changed.items():
        for step, value in values.items():
            hashes = own[step][channel.replace("_", " ")]
            hashes.update(dict.fromkeys(hashes, value if len(str(value)) == 64 else sha(value)))
    return own


def write(
    path: Path, *processes: Steps, outputs: dict[str, str] | None = None, notes: list[Any] | None = None, **content: Any
) -> Path:
    """A record's folder: a process for each set of steps, ranks where there are several.

    `notes`: lines of the kind `note` of each process. The channel `scalars` holds text, not hashes.
    """
    (path / lines.STEPS).mkdir(parents=True)
    for rank, steps in enumerate(processes):
        name = f"rank-{rank}.1{rank}" if len(processes) > 1 else "10"
        written = [
            {"kind": "process", "pid": 10, "argv": ["train.py"], "python": "3.11.2", "frameworks": {"torch": "2"}}
        ]
        for step, hashes in steps.items():
            hashes, numbers = {**hashes}, hashes.get(lines.SCALARS, {})
            hashes.pop(lines.SCALARS, None)
            written.append({"kind": "step", "step": step, "hashes": hashes, "scalars": numbers})
        written += [{"kind": "note", **note} for note in notes or []]
        (path / lines.STEPS / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in written))
    trained = [one for one in lines.processes(path) if one.steps]
    whole = {
        "schema": 1,
        "command": ["python", "train.py"],
        "folder": "/home/me",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "exit_code": 0,
        "every": 1,
        "facts": {"versions": {"torch": "2"}, "threads": 2},
        "processes": [{"name": p.name, "rank": p.rank, "steps": p.last, "frameworks": {"torch": "2"}} for p in trained],
        "outputs": outputs or {},
        "notes": [],
        "fingerprint": record.fingerprint(trained, outputs or {}),
        "unseen": [text for process in trained for text in process.unseen],
    }
    (path / record.FILE).write_text(json.dumps(whole | content))
    return path


SCRIPT = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
"""
"""The first lines of a program in Python; `#!` alone takes no path with a space."""


def container(text: str) -> Container:
    """The container that a command of these words starts."""
    result = find(text.split())
    assert result is not None
    return result


def program(folder: Path, name: str, code: str) -> None:
    """A program of this name, to stand in for the real one: Python code, whose arguments are `words`."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"{SCRIPT}import json, sys\nwords = sys.argv[1:]\n{code}\n")
    (folder / name).chmod(0o755)


def recorded(*words: str) -> int:
    """`repro record WORDS` in this process; its exit code."""
    return __main__.main(["record", *words])
