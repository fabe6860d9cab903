"""Probes of the engines' tests: who calls, what a run printed and left, how the kernel confines it."""

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from support.runs import HANG

IMAGE = "repro:test"  # not the name in mlcube.yaml, which may be somebody's own image
STEPS = 20
COMMIT = "0123456789abcdef0123456789abcdef01234567-dirty"

# What a caller's shell may hold; POISON stands for a folder of packages that raise.
POISONED = {
    "PYTHONPATH": "POISON",
    "CUBLAS_WORKSPACE_CONFIG": ":16:8",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_no_such_flag",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "ATEN_CPU_CAPABILITY": "default",
}

# Every file of the project and every installed package, one a line, for what an image holds.
LISTING = """
cd /opt/repro
find . -path ./.venv -prune -o -type f ! -name '*.pyc' -exec sha256sum {} +
find .venv -name '*.dist-info' -prune
"""


@dataclass(frozen=True)
class Caller:
    """The user who starts the containers: a plain one, with a home."""

    uid: int
    gid: int
    home: Path

    def environment(self) -> dict[str, str]:
        certificates = {name: value for name, value in os.environ.items() if name.endswith(("_CERT_FILE", "_PROXY"))}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C"} | certificates

    def start(self, command: list[str], cwd: Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """A process of this user. Its output is one stream."""
        identity: dict[str, object] = {}
        if os.getuid() != self.uid:
            identity = {"user": self.uid, "group": self.gid, "extra_groups": []}
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=self.environment() | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **identity,
        )  # type: ignore[call-overload]

    def run(self, command: list[str], cwd: Path, env: dict[str, str] | None = None, timeout: float = HANG) -> str:
        """The output of a command that has to succeed."""
        with self.start(command, cwd, env) as process:
            output, _ = process.communicate(timeout=timeout)
        assert process.returncode == 0, output
        return output


def fingerprint_of(output: str) -> str:
    """The fingerprint that a run printed."""
    result = re.findall(r"^fingerprint (sha256:[0-9a-f]{64})$", output, re.MULTILINE)
    assert len(result) == 1, output
    return result[0]


def experiment_of(workspace: Path, task: str) -> dict:
    """The record of the one run of a task in a workspace."""
    (path,) = workspace.glob(f"outputs/{task}/*/experiment.json")
    return json.loads(path.read_text())


def owners(folder: Path) -> set[tuple[int, int]]:
    """User and group of everything in a folder."""
    return {(path.lstat().st_uid, path.lstat().st_gid) for path in [folder, *folder.rglob("*")]}


def give(folder: Path, uid: int, gid: int) -> None:
    """Makes a folder and all in it somebody's own."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, uid, gid, follow_symlinks=False)


@dataclass(frozen=True)
class Confinement:
    """The confinement of a process in a container, as the kernel reports it."""

    capabilities: int
    interfaces: set[str]
    root_is_read_only: bool

    @classmethod
    def of(cls, process: int) -> "Confinement":
        proc = Path(f"/proc/{process}")
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        interfaces = {line.split(":")[0].strip() for line in (proc / "net" / "dev").read_text().splitlines()[2:]}
        mounts = [line.split() for line in (proc / "mounts").read_text().splitlines()]
        root = [options for _, place, _, options, *_ in mounts if place == "/"][-1]
        return cls(int(status["CapEff"], 16) | int(status["CapPrm"], 16), interfaces, "ro" in root.split(","))


CONFINED = Confinement(capabilities=0, interfaces={"lo"}, root_is_read_only=True)


def confinement_of_training(process: subprocess.Popen[str], workspace: Path) -> Confinement:
    """The confinement of the Python that a running command has started, itself or through an engine's daemon.

    Of all trainings in containers on this machine it is the one that has this workspace mounted.
    """
    while process.poll() is None:
        for candidate in psutil.process_iter(["cmdline"]):
            words = candidate.info["cmdline"] or []
            # run.sh's last words in an image, and no process but the Python itself.
            if words[1:5] == ["-P", "-s", "-m", "repro"] and words[0].startswith("/opt/repro/.venv/"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    if f"{workspace} /" in Path(f"/proc/{candidate.pid}/mountinfo").read_text():
                        return Confinement.of(candidate.pid)
    raise AssertionError(f"no training was seen: {process.communicate()[0]}")


def listing_of_image(image: str) -> list[str]:
    """LISTING's lines for a Docker image; by its number, as test_mlcube.py looks for containers of its name."""
    inspect = ["docker", "image", "inspect", "--format={{.Id}}", image]
    number = subprocess.check_output(inspect, text=True).strip()
    command = ["docker", "run", "--rm", "--entrypoint=sh", number, "-c", LISTING]
    return subprocess.check_output(command, text=True).splitlines()
