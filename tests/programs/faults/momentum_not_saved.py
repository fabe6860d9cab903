"""A loop in NumPy that saves its weights, and no momentum."""

import sys
import time
from pathlib import Path

import numpy as np

import repro

saved = Path(sys.argv[1]) / "saved.npy"
weights, momentum, first = np.ones(4, np.float32), np.zeros(4, np.float32), 1
if "--resume" in sys.argv:
    weights, first = np.load(saved)[1:], int(np.load(saved)[0]) + 1
for step in range(first, 13):
    momentum = momentum * np.float32(0.9) + weights * np.float32(0.1)
    weights = weights - momentum
    repro.watch(step, weights)
    np.save(saved.with_name("new.npy"), np.array([step, *weights], np.float32))
    saved.with_name("new.npy").replace(saved)  # whole, whenever it is killed
    time.sleep(0.01)
