"""Writes the lines of five steps, as the observer would; what decides the bits, its options say.

`--by=WORDS` names them: `threads` (OMP_NUM_THREADS), `rate` (the option --lr), `file` (setting.txt), `package` (the version
of the package `deciding`), `both` (threads and the rate together), `chance` (each run). The third step shows it.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--by", default="")
parser.add_argument("--lr", default="0.1")
parser.add_argument("--name", default="")
parser.add_argument("--verbose", action="store_true")
parser.add_argument("--steps", type=int, default=5)
options = parser.parse_args()
by = options.by.split(",")
threads = os.environ.get("OMP_NUM_THREADS")
known = {
    "threads": lambda: threads,
    "rate": lambda: options.lr,
    "file": lambda: Path("setting.txt").read_text(),
    "package": lambda: importlib.metadata.version("deciding"),
    "both": lambda: threads == "4" and options.lr == "0.2",
    "chance": time.time_ns,
    "": lambda: None,
}
value = [known[word]() for word in by]


def sha(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


frameworks = {"deciding": importlib.metadata.version("deciding")} if "package" in by else {"plain": "1"}
with open(Path(os.environ["REPRO_OBSERVE"]) / "steps" / f"{os.getpid()}.jsonl", "a", buffering=1) as file:

    def line(**content: object) -> None:
        file.write(json.dumps(content) + "\n")

    line(kind="process", argv=["deciding.py"], python="3.11.2", frameworks=frameworks, threads=1)
    line(kind="step", step=0, hashes={"initial weights": {"w": sha(0)}})
    for step in range(1, options.steps + 1):
        Path("last-step").write_text(str(step))
        line(kind="step", step=step, hashes={"weights": {"w": sha(step, value if step >= 3 else None)}})
        time.sleep(0.01)
