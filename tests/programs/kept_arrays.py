"""Writes the lines and the arrays of six steps, as the observer would; `--from=N` is another weight from step N on.

Where it keeps its arrays, it waits after the third step until one of them is removed, and after the fifth to be stopped.
"""

import hashlib
import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

folder = Path(os.environ["REPRO_OBSERVE"])
other = int(next((word.removeprefix("--from=") for word in sys.argv if word.startswith("--from=")), 99))


def kept(value: float) -> str:
    content = b"float32 1\n" + struct.pack("<f", value)
    name = hashlib.sha256(content).hexdigest()
    if os.environ.get("REPRO_OBSERVE_KEEP"):
        (folder / "kept" / name).write_bytes(content)
    return name


with open(folder / "steps" / f"{os.getpid()}.jsonl", "a", buffering=1) as file:

    def line(**content: object) -> None:
        file.write(json.dumps(content) + "\n")

    line(kind="process", argv=["train.py"], python="3.11.2", frameworks={"plain": "1"}, threads=1)
    line(kind="step", step=0, hashes={"initial weights": {"w": kept(0)}})
    for step in range(1, 7):
        Path("reached").write_text(str(step))
        line(kind="step", step=step, hashes={"weights": {"w": kept(step + (step >= other) / 4)}})
        keeps = os.environ.get("REPRO_OBSERVE_KEEP")
        while keeps and step == 3 and len(os.listdir(folder / "kept")) > step:
            time.sleep(0.005)
        if keeps and step == 5:
            signal.pause()
