"""What tests/gpu.sh runs: the promises on a GPU, with the speed and the memory, as one table."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from repro.errors import ReproError
from repro.run import config, data, golden, gpu

ROOT = Path(__file__).parent.parent
DATA = ROOT / "workspace" / "data"
DEVICE = "cpu" if os.environ.get("REHEARSE") else "gpu"
STEPS = 100
# The state as a plain conversion to float32, and XLA's flags as they are by default: what the self-check must refuse.
DROPPED = """
import importlib, os, sys
from repro.run import environment
from repro.run.config import Config, Params
framework, device = sys.argv[1:]
environment.apply(framework, Config(params=Params(numerics="portable", device=device)))
os.environ["XLA_FLAGS"] = ""
names = ("grids", "operations", "optimizers", "checks")
parts = grids, *_, checks = [importlib.import_module(f"repro.portable.{framework}.{name}") for name in names]
if framework == "jax":
    checks.jax.config.update("jax_enable_x64", True)
    plain = lambda x: checks.jnp.where(abs(x) < grids.float32.TINY, 0.0, x).astype("float32")
else:
    plain = lambda x: checks.tf.cast(checks.tf.where(abs(x) < grids.float32.TINY, checks.double(0.0), x), "float32")
for part in parts:
    part.to_state = plain
checks.self_check()
"""


@dataclass
class Row:
    """What one framework did in one arithmetic; fingerprints, and why not where there is none."""

    framework: str
    numerics: str
    cpu: str = ""
    gpu: str = ""
    again: str = ""
    resumed: str = ""
    published: str = ""
    seconds: float = 0.0
    """Of an epoch of 60,000 images in batches of 32, the second."""
    memory: int = 0
    """MiB of the GPU that came into use while it trained."""

    def broken(self) -> list[str]:
        """The promises that were not kept."""
        promised = {} if self.numerics == "fast" else {"again": self.again, "resumed": self.resumed}
        if self.numerics == "portable":
            promised |= {"on the CPU": self.cpu, "as published": self.published}
        return [f"{self.framework}, {self.numerics}: {name}" for name, other in promised.items() if other != self.gpu]


class RunError(Exception):
    """A run that ended badly."""


def call(framework: str, workspace: Path, *overrides: str) -> str:
    """Trains; the fingerprint. RunError with the run's own line of error."""
    arguments = [framework, f"--workspace={workspace}", f'output.data_path="{DATA}"', *overrides]
    own = {"WORKSPACE_PATH": str(workspace), "PYTHONHASHSEED": "0"}
    if (ROOT / ".venv" / framework / "installed").exists():
        command = [str(ROOT / "run.sh"), *arguments]
    else:
        command = [sys.executable, "-P", "-s", "-m", "repro", *arguments]
    done = subprocess.run(command, env=os.environ | own, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.search(r"^fingerprint (sha256:\w+)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise RunError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return found[1]


def measured(row: Row, workspace: Path) -> None:
    """Seconds of the second epoch, and memory, of a run on the GPU."""
    before, peak, done = used(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, used())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        call(
            row.framework, workspace, f"params.numerics={row.numerics}", f"params.device={DEVICE}", "params.n_epochs=2"
        )
    finally:
        done.set()
        thread.join()
    (metrics,) = workspace.glob("outputs/*/*/metrics.jsonl")
    row.seconds = json.loads(metrics.read_text().splitlines()[-1])["train_seconds"]
    row.memory = max(peak - before, 0) >> 20


def used() -> int:
    """Bytes of the GPU's memory in use; 0 where nobody tells."""
    with contextlib.suppress(Exception):
        return gpu.memory()[0]
    return 0


def trained(row: Row, folder: Path) -> None:
    """Fills a row."""
    steps, on_gpu = (f"params.numerics={row.numerics}", f"params.max_steps={STEPS}"), f"params.device={DEVICE}"
    row.gpu = call(row.framework, fresh(folder), *steps, on_gpu)
    row.again = call(row.framework, fresh(folder), *steps, on_gpu)
    workspace = fresh(folder)
    call(row.framework, workspace, *steps, on_gpu, "params.max_steps=60")
    row.resumed = call(row.framework, workspace, *steps, on_gpu, "params.resume=auto")
    row.cpu = call(row.framework, fresh(folder), *steps, "params.device=cpu")
    row.published = golden.read("mnist")[f"sgd/step-{STEPS}"] if row.numerics == "portable" else ""
    measured(row, fresh(folder))


def fresh(folder: Path) -> Path:
    """An empty workspace."""
    workspace = Path(tempfile.mkdtemp(dir=folder))
    shutil.copy(ROOT / "workspace" / "train.yaml", workspace)
    return workspace


def refuses(framework: str) -> str:
    """What the self-check says of a rounding that XLA may drop."""
    own = ROOT / ".venv" / framework / "bin" / "python"
    command = [str(own) if own.exists() else sys.executable, "-c", DROPPED, framework, DEVICE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "passes: nothing is dropped here"
    return done.stderr.strip().splitlines()[-1].removeprefix("repro.errors.ReproError: portable numerics: ")


def main(asked: list[str]) -> int:
    """Prints the table; the exit code."""
    there = [name for name in config.FRAMEWORKS if (ROOT / ".venv" / name / "installed").exists()] or asked
    wrong = [name for name in asked if name not in there]
    if wrong or not there:
        print(f"error: {', '.join(wrong) or 'no framework'}: not installed; one or more of {there}", file=sys.stderr)
        return 2
    if DEVICE == "gpu" and not gpu.count():
        print("error: the driver shows no NVIDIA GPU (nvidia-smi); REHEARSE=1 tries this on the CPU", file=sys.stderr)
        return 2
    data.load(config.Data(), DATA)
    folder, started = Path(tempfile.mkdtemp(prefix="repro-gpu-")), time.perf_counter()
    rows, failed, refused = [], [], {}
    for framework in asked or there:
        for numerics in ("portable", "deterministic", "fast"):
            row = Row(framework, numerics)
            print(f"{time.perf_counter() - started:5.0f} s  {framework}, {numerics}", file=sys.stderr)
            try:
                trained(row, folder)
            except RunError as error:
                failed.append(f"{framework}, {numerics}: {error}")
            rows.append(row)
        if framework != "pytorch":  # eager: no compiler that could drop anything
            refused[framework] = refuses(framework)
    shown = gpu.described()[:1] or [{"model": "no GPU (a rehearsal)", "driver": "-"}]
    show(rows, f"{shown[0]['model']}, driver {shown[0]['driver']}")
    for framework, said in refused.items():
        print(f"self-check in {framework}, with a plain conversion and XLA's own flags: {said}")
    broken = [] if failed else [promise for row in rows for promise in row.broken()]
    for line in [*failed, *(f"BROKEN  {promise}" for promise in broken)]:
        print(line)
    found = {
        "gpu": shown,
        "rows": [asdict(row) for row in rows],
        "refused": refused,
        "failed": failed,
        "broken": broken,
    }
    (folder / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"{time.perf_counter() - started:.0f} s; results in {folder / 'gpu.json'}")
    return 1 if failed else 3 if broken else 0


def show(rows: list[Row], title: str) -> None:
    table = Table(title=title, box=box.SIMPLE)
    for heading in ("", "numerics", "CPU", "GPU", "again", "resumed", "published", "s / epoch", "MiB"):
        table.add_column(heading, justify="right" if heading in ("s / epoch", "MiB") else "left")
    for row in rows:
        prints = (row.cpu, row.gpu, row.again, row.resumed, row.published)
        short = (name.removeprefix("sha256:")[:8] for name in prints)
        table.add_row(row.framework, row.numerics, *short, f"{row.seconds:.2f}", str(row.memory))
    Console(width=110).print(table)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ReproError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
