"""Planted: a moving average of the weights, which is what is kept in the end, begins anew in a resumed run.

`--watch` has it looked at as well.
"""

import argparse
import json
import time
from pathlib import Path

import repro

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--pause", type=float, default=0.01)
parser.add_argument("--resume", action="store_true")
parser.add_argument("--watch", action="store_true")
options = parser.parse_args()
step, weight = 0, 1.0
if options.resume:
    step, weight = json.loads((options.out / "checkpoint.json").read_text())
average = weight
while step < 12:
    step, weight = step + 1, weight - 0.1 * (weight - 0.5)
    average = 0.9 * average + 0.1 * weight
    repro.watch(step, {"weight": weight, "average": average} if options.watch else {"weight": weight})
    if step % 2 == 0:
        beside = options.out / "checkpoint.new"
        beside.write_text(json.dumps([step, weight]))
        beside.replace(options.out / "checkpoint.json")
    time.sleep(options.pause)
(options.out / "model.json").write_text(json.dumps(average))
