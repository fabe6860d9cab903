"""Seconds that `mlcube run` adds to a run.

Of the task `download`, which only checks files that are there already.

    .venv/jax/bin/python -P benchmarks/mlcube_overhead.py WORKSPACE [ROUNDS]

from the repository's root, after `make mlcube image`. The last line is JSON, in seconds.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # -P keeps this file's own folder out of it

from msgspec.structs import asdict  # noqa: E402

from repro.trainers.benchmark import intervals  # noqa: E402
from repro.trainers.loop.call import callers_environment  # noqa: E402


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """The seconds that a command takes. It must end well."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return time.perf_counter() - started


def main(workspace: Path, rounds: int) -> None:
    image = re.findall(r"^  image: (\S+)", (ROOT / "mlcube.yaml").read_text(), re.MULTILINE)[0]  # Docker's comes first
    docker = ["docker", "run", "--rm", "--init", f"--user={os.getuid()}:{os.getgid()}"]
    mlcube = [str(ROOT / ".venv/mlcube/bin/mlcube"), "run", f"--mlcube={ROOT}", "--platform=docker"]
    commands = {
        "host": [str(ROOT / "run.sh"), "download", f"--workspace={workspace}"],
        "docker": [*docker, f"--volume={workspace}:/workspace", image, "download", "--workspace=/workspace"],
        "mlcube": [*mlcube, "--task=download", f"--workspace={workspace}"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as settings:
        environment = callers_environment(Path(settings)) | {"MLCUBE_SYSTEM_SETTINGS": f"{settings}/mlcube.yaml"}
        for number in range(rounds + 1):
            for name in list(commands)[:: 1 if number % 2 else -1]:
                lasted = seconds(commands[name], environment)
                taken[name] += [lasted] if number else []  # the first round warms caches
    added = {name: [a - b for a, b in zip(taken[name], taken["host"], strict=True)] for name in ("docker", "mlcube")}
    measured = taken | {f"{name} - host": values for name, values in added.items()}
    print(json.dumps({name: asdict(intervals.summary(values)) for name, values in measured.items()}))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: benchmarks/mlcube_overhead.py WORKSPACE [ROUNDS]; WORKSPACE must exist")
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) == 3 else 5)
