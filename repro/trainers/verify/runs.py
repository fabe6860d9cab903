"""Runs of the reference trainers.

A run is one process of `./run.sh` or several, on the host, emulated, or in a container.
"""

import json
import os
import platform
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from repro.machine import gpu
from repro.machine.facts import ROOT
from repro.record.running import Ended, Watch, in_background
from repro.structs import converted
from repro.trainers.loop import config, trace
from repro.trainers.loop.call import callers_environment, error_line, quoted
from repro.trainers.loop.config import Config
from repro.trainers.verify.questions import ENTROPY
from repro.verify.folders import without_folders
from repro.verify.questions import Change
from repro.verify.results import DONE, FAILED, REFUSED, MetricsRow, Run

STATUS: dict[int, Literal["done", "refused"]] = {0: DONE, 2: REFUSED}  # all else: FAILED
SECONDS_TO_RUN = 3600
# How a build says that it needs instructions which the CPU lacks: jaxlib says it, TensorFlow dies.
NEEDS_MORE = re.compile(r"built using \w+ instructions, which your CPU")
DIED_OF_IT = (-signal.SIGILL, 128 + signal.SIGILL)
LOCKED_DOWN = (
    "--network=none",
    "--read-only",
    "--tmpfs=/tmp",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)  # options of Docker


@dataclass
class Runner:
    """Carries out changes, each in a workspace of its own below `folder`."""

    config: Config
    workspace: Path
    overrides: list[str]
    """The user's keys, for all runs alike."""
    folder: Path

    def missing(self, framework: str, change: Change) -> str | None:
        """Returns what this machine lacks for a change, or None."""
        settings = self.config.verify
        if change.runtime in ("host", "qemu") and not (ROOT / ".venv" / framework / "installed").exists():
            return f"no environment for {framework}: requirements/install.sh {framework}"
        if "params.device=gpu" in change.overrides and not gpu.count():
            return "no NVIDIA GPU"
        if change.runtime == "docker":
            return _docker(settings.docker_image)
        if change.runtime == "apptainer":
            return _apptainer(_sif(settings.sif))
        if change.runtime == "qemu":
            return None if _emulator() else "no qemu-user on this machine, or it is not x86-64"
        if change.runtime == "other" and not settings.others.get(framework):
            return f"verify.others names no other environment for {framework}"
        return None

    def run(self, tasks: Sequence[str], numerics: str, change: Change, name: str) -> Run:
        """Carries out a change. `tasks` are the frameworks that a relay goes through, or one."""
        workspace = self.folder / name
        workspace.mkdir(parents=True)
        configuration = self.workspace / f"{config.NAME}.yaml"
        if configuration.exists():
            shutil.copy(configuration, workspace)
        steps = self.config.verify.steps
        common = [f"params.numerics={numerics}", "params.device=cpu", f"params.max_steps={steps}"]
        traced = [*self.overrides, *common, f"params.trace_steps={_tenth(steps)}"]
        seeded = [f"params.seed={secrets.randbits(63)}" if item == ENTROPY else item for item in change.overrides]
        processes = _Processes(self.config, change, workspace, [*traced, *seeded])
        started = time.perf_counter()
        for task, overrides in _course(change.course, tasks, steps, workspace):
            if not processes.run(task, overrides):
                break
        return processes.outcome(numerics, time.perf_counter() - started)


def _course(course: str, tasks: Sequence[str], steps: int, workspace: Path) -> Iterator[tuple[str, list[str]]]:
    """Each process of a run, once the one before it has ended: its framework, and the keys that it alone has."""
    if course == "relay":  # each framework goes on from the checkpoint that the one before left
        resume = "never"
        for number, task in enumerate(tasks, 1):
            yield task, [f"params.max_steps={steps * number // len(tasks)}", f"params.resume={resume}"]
            resume = quoted(str(next((workspace / "model" / task).glob("epoch_*.safetensors"))))
        return
    if course == "epoch":
        yield tasks[0], ["params.max_steps=60"]
    if course == "kill":
        yield tasks[0], [f"params.checkpoint_steps={_tenth(steps)}"]
    yield tasks[0], [] if course == "straight" else ["params.resume=auto"]


def _tenth(steps: int) -> int:
    return max(1, steps // 10)


@dataclass
class _Processes:
    """The processes of one run, and how the last one ended."""

    config: Config
    change: Change
    workspace: Path
    overrides: list[str]
    task: str = ""
    command: str = ""
    number: int = 0
    code: int = 0
    stderr: str = ""

    def run(self, task: str, more: Sequence[str]) -> bool:
        """One process to its end; True if it ended well. The first of a kill is killed at its first checkpoint."""
        self.task, self.number = task, self.number + 1
        killed = self.change.course == "kill" and self.number == 1
        ended = self._carry_out(more, self._has_checkpoint if killed else _lasts_too_long)
        self.code, self.stderr = ended.code, ended.stderr
        if killed:
            if self.code == 0:
                self.code, self.stderr = 1, "error: verify: the run ended before it could be killed; raise verify.steps"
            return self.code == -signal.SIGKILL
        if ended.stopped:
            self.stderr = f"error: verify: no end after {SECONDS_TO_RUN} seconds; lower verify.steps"
        if self.code in DIED_OF_IT:
            self.code, self.stderr = 2, "error: killed by SIGILL: its build needs instructions that this CPU lacks"
        elif NEEDS_MORE.search(self.stderr):
            self.code = 2
        return self.code == 0

    def _has_checkpoint(self, process: subprocess.Popen[bytes]) -> bool:
        while process.poll() is None:
            if any(self.workspace.glob("model/*/epoch_*.safetensors")):
                return True
            time.sleep(0.001)
        return False

    def _carry_out(self, more: Sequence[str], is_over: Watch) -> Ended:
        environment = dict(self.change.environment)
        command = self._words([*self.overrides, *more])
        if self.change.runtime == "qemu":
            environment["REPRO_EMULATOR"] = f"{_emulator()} -cpu {self.change.label}"
        elif self.change.runtime == "other":
            environment["REPRO_PYTHON"] = self.config.verify.others[self.task]
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        self.command = " ".join([*words, shlex.join(command)])
        callers = callers_environment(self.workspace / f"cache{self.number}")
        place = "/" if self.change.environment else None
        return in_background(command, self.workspace, is_over, signal.SIGKILL, env=callers | environment, cwd=place)

    @property
    def _data(self) -> Path:
        return Path(self.config.output.data_path).resolve()

    def _words(self, overrides: list[str]) -> list[str]:
        settings = self.config.verify
        inside = [self.task, "--workspace=/workspace", *overrides, "output.data_path=/data"]
        if self.change.runtime == "docker":
            user = f"--user={os.getuid()}:{os.getgid()}"
            mounts = [f"--volume={self.workspace}:/workspace", f"--volume={self._data}:/data:ro"]
            return ["docker", "run", "--rm", "--init", user, *LOCKED_DOWN, *mounts, settings.docker_image, *inside]
        if self.change.runtime == "apptainer":
            mounts = [f"--bind={self.workspace}:/workspace", f"--bind={self._data}:/data:ro"]
            apart = ["--containall", "--pwd=/", "--net", "--network=none"]
            return ["singularity", "run", *apart, *mounts, str(_sif(settings.sif)), *inside]
        places = [f"--workspace={self.workspace}", *overrides, f"output.data_path={quoted(str(self._data))}"]
        return [str(ROOT / "run.sh"), self.task, *places]

    def outcome(self, numerics: str, seconds: float) -> Run:
        """The run as results.json has it. Its folder is DIR there, the data's DATA, ROOT a dot, and the home ~."""
        run = Run(
            task=self.task,
            numerics=numerics,
            label=self.change.label,
            command=self.command,
            status=STATUS.get(self.code, FAILED),
            steps=self.config.verify.steps,
            seconds=seconds,
        )
        if run.status == DONE:
            self._read(run)
        else:
            run.error = error_line(self.stderr, self.code)
        moved: Run = without_folders(run, {self.workspace: "DIR", self._data: "DATA", ROOT: ".", Path.home(): "~"})
        return moved

    def _read(self, run: Run) -> None:
        """Adds what the trainer printed, and left in its folder."""
        stdout = (self.workspace / "stdout").read_text()
        run.fingerprint = re.findall(r"^fingerprint (sha256:[0-9a-f]{64})$", stdout, re.MULTILINE)[-1]
        folder = left_by(self.workspace, self.task)
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        run.metrics = [converted(row, MetricsRow) for row in rows]
        run.evaluation = f"{float(rows[-1]['test_loss']).hex()} {rows[-1]['test_accuracy']}"
        run.experiment = experiment = json.loads((folder / "experiment.json").read_text())
        if self.change.runtime == "other":
            run.label = f"{experiment['framework']['version']} on {experiment['cpu']['architecture']}"
        losses = trace.read(folder).losses
        run.loss_steps, run.losses = list(losses), [trace.loss_of(bits) for bits in losses.values()]


def _lasts_too_long(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(SECONDS_TO_RUN)
    except subprocess.TimeoutExpired:
        return True
    return False


def left_by(workspace: Path, task: str) -> Path:
    """The folder of the last run of a framework in a workspace."""
    return sorted((workspace / "outputs" / task).iterdir())[-1]


# --- what the machine has -------------------------------------------------------------------------------------------


@cache
def _emulator() -> str | None:
    """qemu-user's program for x86-64, on such a machine: it emulates CPUs that lack what this one has."""
    if platform.machine() != "x86_64":
        return None
    return shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")


@cache
def _docker(image: str) -> str | None:
    if not shutil.which("docker"):
        return "Docker is not installed"
    if not _ends_well("docker", "info"):
        return "no Docker daemon answers"
    return None if _ends_well("docker", "image", "inspect", image) else f"no Docker image {image}: make image"


def _apptainer(sif: Path) -> str | None:
    if not shutil.which("singularity"):
        return "Apptainer is not installed"
    return None if sif.exists() else f"no image {sif.name}: make sif"


def _sif(name: str) -> Path:
    return ROOT / name  # an absolute path stays as it is


def _ends_well(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
