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
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from repro.trainers.verify.questions import ENTROPY, TrainerChange
from repro.verify.folders import without_folders
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
class TrainerTrial:
    """The result of one run of a reference trainer."""

    run: Run
    folder: Path | None = None
    """Where the trainer left its files; None unless it was done."""

    def as_run(self) -> Run:
        """The run as results.json has it."""
        return self.run


@dataclass
class Runner:
    """Carries out changes, each in a workspace of its own below `folder`."""

    config: Config
    workspace: Path
    overrides: list[str]
    """The user's keys, for all runs alike."""
    folder: Path

    def missing(self, framework: str, change: TrainerChange) -> str | None:
        """What this machine lacks for a change, or None."""
        settings = self.config.verify
        if change.runtime in ("host", "qemu") and not (ROOT / ".venv" / framework / "installed").exists():
            return f"no environment for {framework}: requirements/install.sh {framework}"
        if change.gpu and not gpu.count():
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

    def run(self, framework: str, numerics: str, change: TrainerChange, name: str, tasks: list[str]) -> TrainerTrial:
        """Carries out a change. `tasks` are the frameworks that a relay goes through."""
        workspace = self.folder / name
        workspace.mkdir(parents=True)
        configuration = self.workspace / f"{config.NAME}.yaml"
        if configuration.exists():
            shutil.copy(configuration, workspace)
        steps = self.config.verify.steps
        every = max(1, steps // 10)
        common = [f"params.numerics={numerics}", "params.device=cpu", f"params.max_steps={steps}"]
        traced = [*self.overrides, *common, f"params.trace_steps={every}"]
        seeded = [f"params.seed={secrets.randbits(63)}" if item == ENTROPY else item for item in change.overrides]
        call = _Call(self, framework, change, workspace, [*traced, *seeded])
        started = time.perf_counter()
        if change.course == "epoch":
            call("params.max_steps=60") and call("params.resume=auto")
        elif change.course == "kill":
            call.until_killed(f"params.checkpoint_steps={every}") and call("params.resume=auto")
        elif change.course == "relay":
            _relay(call, tasks, steps)
        else:
            call()
        return _outcome(call, numerics, time.perf_counter() - started)


@dataclass
class _Call:
    """Calls of run.sh for one change, and how the last one ended."""

    runner: Runner
    task: str
    change: TrainerChange
    workspace: Path
    overrides: list[str]
    commands: list[str] = field(default_factory=list)
    code: int = 0
    stderr: str = ""

    def __call__(self, *more: str) -> bool:
        """One process to its end; True if it ended well."""
        if self._run(_lasts_too_long, more).stopped:
            self.stderr = f"error: verify: no end after {SECONDS_TO_RUN} seconds; lower verify.steps"
        if self.code in DIED_OF_IT:
            self.code, self.stderr = 2, "error: killed by SIGILL: its build needs instructions that this CPU lacks"
        elif NEEDS_MORE.search(self.stderr):
            self.code = 2
        return self.code == 0

    def until_killed(self, *more: str) -> bool:
        """One process until its first checkpoint, then SIGKILL; True if it died of that."""
        self._run(self._has_checkpoint, more)
        if self.code == 0:
            self.code, self.stderr = 1, "error: verify: the run ended before it could be killed; raise verify.steps"
        return self.code == -signal.SIGKILL

    def _has_checkpoint(self, process: subprocess.Popen[bytes]) -> bool:
        while process.poll() is None:
            if any(self.workspace.glob("model/*/epoch_*.safetensors")):
                return True
            time.sleep(0.001)
        return False

    def _run(self, is_over: Watch, more: Sequence[str]) -> Ended:
        environment = dict(self.change.environment)
        command = self._command([*self.overrides, *more])
        if self.change.runtime == "qemu":
            environment["REPRO_EMULATOR"] = f"{_emulator()} -cpu {self.change.label}"
        elif self.change.runtime == "other":
            environment["REPRO_PYTHON"] = self.runner.config.verify.others[self.task]
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        self.commands.append(self.without_local_folders(" ".join([*words, shlex.join(command)])))
        callers = callers_environment(self.workspace / f"cache{len(self.commands)}")
        place = "/" if self.change.environment else None
        ended = in_background(command, self.workspace, is_over, signal.SIGKILL, env=callers | environment, cwd=place)
        self.code, self.stderr = ended.code, ended.stderr
        return ended

    def without_local_folders(self, text: str) -> str:
        """A text in which the run's folder is DIR, the data's DATA, ROOT a dot, and the home ~."""
        names = {self.workspace: "DIR", self._data(): "DATA", ROOT: ".", Path.home(): "~"}
        moved: str = without_folders(text, names)
        return moved

    def _data(self) -> Path:
        return Path(self.runner.config.output.data_path).resolve()

    def _command(self, overrides: list[str]) -> list[str]:
        settings, data = self.runner.config.verify, self._data()
        inside = [self.task, "--workspace=/workspace", *overrides, "output.data_path=/data"]
        if self.change.runtime == "docker":
            user = f"--user={os.getuid()}:{os.getgid()}"
            mounts = [f"--volume={self.workspace}:/workspace", f"--volume={data}:/data:ro"]
            return ["docker", "run", "--rm", "--init", user, *LOCKED_DOWN, *mounts, settings.docker_image, *inside]
        if self.change.runtime == "apptainer":
            mounts = [f"--bind={self.workspace}:/workspace", f"--bind={data}:/data:ro"]
            apart = ["--containall", "--pwd=/", "--net", "--network=none"]
            return ["singularity", "run", *apart, *mounts, str(_sif(settings.sif)), *inside]
        places = [f"--workspace={self.workspace}", *overrides, f"output.data_path={quoted(str(data))}"]
        return [str(ROOT / "run.sh"), self.task, *places]


def _lasts_too_long(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(SECONDS_TO_RUN)
    except subprocess.TimeoutExpired:
        return True
    return False


def _relay(call: _Call, tasks: list[str], steps: int) -> None:
    """Each framework takes its share of the steps, from the checkpoint that the one before left."""
    resume = "never"
    for number, task in enumerate(tasks, 1):
        call.task, end = task, steps * number // len(tasks)
        if not call(f"params.max_steps={end}", f"params.resume={resume}"):
            return
        resume = quoted(str(next((call.workspace / "model" / task).glob("epoch_*.safetensors"))))


def _outcome(call: _Call, numerics: str, seconds: float) -> TrainerTrial:
    run = Run(
        task=call.task,
        numerics=numerics,
        label=call.change.label,
        command=call.commands[-1],
        status=STATUS.get(call.code, FAILED),
        steps=call.runner.config.verify.steps,
        seconds=seconds,
    )
    if run.status != DONE:
        run.error = call.without_local_folders(error_line(call.stderr, call.code))
        return TrainerTrial(run)
    stdout = (call.workspace / "stdout").read_text()
    run.fingerprint = re.findall(r"^fingerprint (sha256:[0-9a-f]{64})$", stdout, re.MULTILINE)[-1]
    folder = sorted((call.workspace / "outputs" / call.task).iterdir())[-1]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    run.metrics = [converted(row, MetricsRow) for row in rows]
    run.evaluation = f"{float(rows[-1]['test_loss']).hex()} {rows[-1]['test_accuracy']}"
    experiment = json.loads(call.without_local_folders((folder / "experiment.json").read_text()))
    run.experiment = experiment
    if call.change.runtime == "other":
        run.label = f"{experiment['framework']['version']} on {experiment['cpu']['architecture']}"
    losses = trace.read(folder).losses
    run.loss_steps, run.losses = list(losses), [trace.loss_of(bits) for bits in losses.values()]
    return TrainerTrial(run, folder)


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
