"""An evaluation without a framework, whose options make its scores depend on one thing each."""

import argparse
import json
import os
import random
import time
from pathlib import Path

SAMPLES = 24


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--by", choices=("nothing", "threads", "chance", "batch", "time", "moment"), default="nothing")
    options = parser.parse_args()
    added = {
        "nothing": 0.0,
        "threads": 1e-7 * (os.environ.get("OMP_NUM_THREADS") == "1"),
        "chance": random.random(),
        "batch": 1e-7 * options.batch_size,
        "time": 0.0,
        "moment": 0.0,
    }[options.by]
    rows = [{"id": number, "score": number / SAMPLES + added} for number in range(SAMPLES)]
    for start in range(0, SAMPLES, options.batch_size):
        batch = rows[start : start + options.batch_size]
        print(f"batch {start // options.batch_size}: loss {sum(row['score'] for row in batch) / len(batch)}")
    print(f"epoch 3: val_loss={sum(row['score'] for row in rows) / SAMPLES:.9f}, it took {time.time() % 100:.6f}s")
    if options.by == "moment":  # two values as of any moments, though not of the baselines
        print(*(f"running loss {random.random() if 'PYTHONHASHSEED' in os.environ else 0.5}\n" for _ in range(2)))
    if options.by == "time":
        print(f"mean: {time.time() % 100}")  # a time under the name of a statistic
    if options.out:
        (options.out / "time.txt").write_text(f"took {time.time()} s\n")
        rows.reverse()
        lines = sorted(rows, key=lambda row: row["id"] % options.batch_size)  # as workers finish them
        (options.out / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))


main()
