"""A training in NumPy that writes checkpoints and goes on from them, for receipts and audits.

The variable CHEAT plants what its maker hides: `data@7` another batch in step 7, `rate@7` another learning rate from step 7
on, `skip@7` no update in step 7, `end` other weights than the trained ones in the model's file.
"""

import argparse
import os
from pathlib import Path

import numpy as np

import repro

SIZE, STEPS, EVERY = 8, 12, 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    kind, _, at = os.environ.get("CHEAT", "").partition("@")
    planted = int(at or 0)
    examples = np.random.default_rng(1).normal(size=(64, SIZE))
    weights, momentum, first = np.zeros(SIZE), np.zeros(SIZE), 0
    path = options.out / "checkpoint.npz"
    if options.resume:
        kept = np.load(path)
        weights, momentum, first = kept["weights"], kept["momentum"], int(kept["step"])
    for step in range(first + 1, STEPS + 1):
        batch = examples[np.random.default_rng(step).integers(64, size=4)]
        if (kind, planted) == ("data", step):
            batch = batch + 1e-9
        gradient = 2 * batch.T @ (batch @ weights - batch.sum(1)) / len(batch)
        rate = 0.02 if kind == "rate" and step >= planted else 0.01
        momentum = 0.9 * momentum + gradient
        if (kind, planted) != ("skip", step):
            weights = weights - rate * momentum
        repro.watch(step, {"weights": weights, "momentum": momentum})
        if step % EVERY == 0:
            beside = path.with_suffix(".new.npz")
            np.savez(beside, weights=weights, momentum=momentum, step=step)
            beside.replace(path)
    np.save(options.out / "model.npy", weights + (kind == "end"))


if __name__ == "__main__":
    main()
