"""A training in NumPy that leaves model.npz; --unseeded draws other data each time."""

import argparse
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--unseeded", action="store_true")
options = parser.parse_args()

generator = np.random.default_rng(None if options.unseeded else 0)
samples = generator.normal(size=(64, 8))
targets = samples @ np.arange(8.0)
weights = np.zeros(8)
for _step in range(50):
    weights -= 0.05 * samples.T @ (samples @ weights - targets) / len(samples)
options.out.mkdir(parents=True, exist_ok=True)
np.savez(options.out / "model.npz", weights=weights)
