"""Carries out one run of a question: fresh processes of `./run.sh`, on the host, emulated, or in a container engine."""

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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from repro.run import config, gpu, trace
from repro.run.call import callers_environment, error_line, quoted
from repro.run.config import Config
from repro.run.experiment import ROOT
from repro.verify.questions import ENTROPY, Change

DONE, FAILED, REFUSED = "done", "failed", "refused"
STATUS = {0: DONE, 2: REFUSED}  # refused: this machine cannot run it
# How a build says that it needs instructions which the CPU lacks: jaxlib tells, TensorFlow dies.
SECONDS_TO_RUN = 3600
NEEDS_MORE = re.compile(r"built using \w+ instructions, which your CPU")
DIED_OF_IT = (-signal.SIGILL, 128 + signal.SIGILL)


@dataclass
class Outcome:
    """What came of a run; all but `folder` goes into results.json."""

    task: str
    numerics: str
    label: str
    command: str
    status: str
    steps: int
    seconds: float
    error: str | None = None
    fingerprint: str | None = None
    evaluation: str | None = None
    """The test loss, every bit of it, and the accuracy."""
    losses: list[float] = field(default_factory=list)
    loss_steps: list[int] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    experiment: dict[str, Any] | None = None
    folder: Path | None = None

    @property
    def failed(self) -> bool:
        return self.status == FAILED

    def as_run(self) -> dict[str, Any]:
        """As results.json has it."""
        return {name: value for name, value in vars(self).items() if name != "folder"}


@dataclass
class Runner:
    """Runs plans, each in a workspace of its own below `folder`."""

    config: Config
    workspace: Path
    overrides: list[str]
    """The user's own, for all runs alike."""
    folder: Path

    def missing(self, framework: str, plan: Change) -> str | None:
        """What this machine lacks for a plan, or None."""
        settings = self.config.verify
        if plan.engine in ("host", "qemu") and not (ROOT / ".venv" / framework / "installed").exists():
            return f"no environment for {framework}: requirements/install.sh {framework}"
        if plan.gpu and not gpu.count():
            return "no NVIDIA GPU"
        if plan.engine == "docker":
            return _docker(settings.docker_image)
        if plan.engine == "apptainer":
            return _apptainer(_sif(settings.sif))
        if plan.engine == "qemu":
            return None if _emulator() else "no qemu-user on this machine, or it is no x86-64"
        if plan.engine == "other" and not settings.others.get(framework):
            return f"verify.others names no other environment for {framework}"
        return None

    def run(self, framework: str, numerics: str, plan: Change, name: str, tasks: list[str]) -> Outcome:
        """Carries out a plan. `tasks` are the frameworks that a relay goes through."""
        workspace = self.folder / name
        workspace.mkdir(parents=True)
        own = self.workspace / f"{config.NAME}.yaml"
        if own.exists():
            shutil.copy(own, workspace)
        steps = self.config.verify.steps
        every = max(1, steps // 10)
        common = [*self.overrides, f"params.numerics={numerics}", "params.device=cpu", f"params.max_steps={steps}",
                  f"params.trace_steps={every}"]  # fmt: skip
        seeded = [f"params.seed={secrets.randbits(63)}" if item == ENTROPY else item for item in plan.overrides]
        call = _Call(self, framework, plan, workspace, [*common, *seeded])
        started = time.perf_counter()
        if plan.course == "epoch":
            call("params.max_steps=60") and call("params.resume=auto")
        elif plan.course == "kill":
            call.until_killed(f"params.checkpoint_steps={every}") and call("params.resume=auto")
        elif plan.course == "relay":
            _relay(call, tasks, steps)
        else:
            call()
        return _outcome(call, numerics, time.perf_counter() - started)


@dataclass
class _Call:
    """Calls run.sh for one plan, once or several times, and keeps what the last call said."""

    runner: Runner
    task: str
    plan: Change
    workspace: Path
    overrides: list[str]
    commands: list[str] = field(default_factory=list)
    code: int = 0
    stdout: str = ""
    stderr: str = ""

    def __call__(self, *more: str) -> bool:
        """One process to its end; True if it ended well."""
        with self._start(*more) as process:
            try:
                self.stdout, self.stderr = process.communicate(timeout=SECONDS_TO_RUN)
            except subprocess.TimeoutExpired:
                process.kill()
                self.stderr = f"error: verify: no end after {SECONDS_TO_RUN} seconds; lower verify.steps"
            except BaseException:
                process.kill()
                raise
        self.code = process.returncode
        if self.code in DIED_OF_IT:
            self.code, self.stderr = 2, "error: killed by SIGILL: its build needs instructions that this CPU lacks"
        elif NEEDS_MORE.search(self.stderr):
            self.code = 2
        return self.code == 0

    def until_killed(self, *more: str) -> bool:
        """One process until its first checkpoint, then SIGKILL; True if it died of that."""
        with self._start(*more) as process:
            while process.poll() is None and not list(self.workspace.glob("model/*/epoch_*.safetensors")):
                time.sleep(0.001)
            process.kill()
            self.stdout, self.stderr = process.communicate()
        self.code = process.returncode
        if self.code == 0:
            self.code, self.stderr = 1, "error: verify: the run ended before it could be killed; raise verify.steps"
        return self.code == -signal.SIGKILL

    def _start(self, *more: str) -> subprocess.Popen[str]:
        environment = dict(self.plan.environment)
        command = self._command([*self.overrides, *more])
        if self.plan.engine == "qemu":
            environment["REPRO_EMULATOR"] = f"{_emulator()} -cpu {self.plan.label}"
        elif self.plan.engine == "other":
            environment["REPRO_PYTHON"] = self.runner.config.verify.others[self.task]
        words = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        self.commands.append(self.anywhere(" ".join([*words, shlex.join(command)])))
        elsewhere = "/" if self.plan.environment else None
        callers = callers_environment(self.workspace / f"cache{len(self.commands)}")
        return subprocess.Popen(
            command, env=callers | environment, cwd=elsewhere, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def anywhere(self, text: str) -> str:
        """The same without this machine's own folders: the run's is DIR, the data's DATA, ROOT a dot, the home ~."""
        for folder, name in ((self.workspace, "DIR"), (self._data(), "DATA"), (ROOT, "."), (Path.home(), "~")):
            text = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, text)
        return text

    def _data(self) -> Path:
        return Path(self.runner.config.output.data_path).resolve()

    def _command(self, overrides: list[str]) -> list[str]:
        settings, data = self.runner.config.verify, self._data()
        inside = [self.task, "--workspace=/workspace", *overrides, "output.data_path=/data"]
        if self.plan.engine == "docker":
            return ["docker", "run", "--rm", "--init", f"--user={os.getuid()}:{os.getgid()}", "--network=none",
                    "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges",
                    f"--volume={self.workspace}:/workspace", f"--volume={data}:/data:ro",
                    settings.docker_image, *inside]  # fmt: skip
        if self.plan.engine == "apptainer":
            return ["singularity", "run", "--containall", "--pwd=/", "--net", "--network=none",
                    f"--bind={self.workspace}:/workspace", f"--bind={data}:/data:ro",
                    str(_sif(settings.sif)), *inside]  # fmt: skip
        return [str(ROOT / "run.sh"), self.task, f"--workspace={self.workspace}", *overrides,
                f"output.data_path={quoted(str(data))}"]  # fmt: skip


def _relay(call: _Call, tasks: list[str], steps: int) -> None:
    """Each framework takes its share of the steps, from the checkpoint that the one before left."""
    resume = "never"
    for number, task in enumerate(tasks, 1):
        call.task, end = task, steps * number // len(tasks)
        if not call(f"params.max_steps={end}", f"params.resume={resume}"):
            return
        resume = quoted(str(next((call.workspace / "model" / task).glob("epoch_*.safetensors"))))


def _outcome(call: _Call, numerics: str, seconds: float) -> Outcome:
    found = Outcome(
        call.task, numerics, call.plan.label, call.commands[-1], STATUS.get(call.code, FAILED),
        call.runner.config.verify.steps, seconds,
    )  # fmt: skip
    if found.status != DONE:
        found.error = call.anywhere(error_line(call.stderr, call.code))
        return found
    printed = re.findall(r"^fingerprint (sha256:[0-9a-f]{64})$", call.stdout, re.MULTILINE)
    found.fingerprint = printed[-1]
    found.folder = sorted((call.workspace / "outputs" / call.task).iterdir())[-1]
    found.metrics = [json.loads(line) for line in (found.folder / "metrics.jsonl").read_text().splitlines()]
    found.experiment = json.loads(call.anywhere((found.folder / "experiment.json").read_text()))
    if call.plan.engine == "other":
        found.label = f"{found.experiment['framework']['version']} on {found.experiment['cpu']['architecture']}"
    last_row = found.metrics[-1]
    found.evaluation = f"{float(last_row['test_loss']).hex()} {last_row['test_accuracy']}"
    losses = trace.read(found.folder).losses
    found.loss_steps, found.losses = list(losses), [trace.loss_of(bits) for bits in losses.values()]
    return found


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
        return "no Docker engine answers"
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
