"""A training that can be resumed, and prints the loss averaged over all steps since its start, which resuming resets."""

import json
import sys
import time
from pathlib import Path

import repro

STEPS = 12
folder, resumed = Path(sys.argv[1]), "--resume" in sys.argv
step, weight = json.loads((folder / "state.json").read_text()) if resumed else (0, 1.0)
total, count = 0.0, 0
while step < STEPS:
    step, weight = step + 1, weight * 0.9
    repro.watch(step, {"weight": weight})
    total, count = total + weight, count + 1
    print(f"step {step} loss {total / count:.9f}", flush=True)
    (folder / "new.json").write_text(json.dumps([step, weight]))
    (folder / "new.json").rename(folder / "state.json")
    time.sleep(0.05)
