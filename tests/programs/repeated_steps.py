"""The number of fingerprints that the same steps give when they are repeated, with more threads than cores."""

import importlib
import sys
from pathlib import Path

import numpy as np

from repro.fingerprint import fingerprint
from repro.trainers.loop import environment, randomness
from repro.trainers.loop.config import Config, Params
from repro.trainers.loop.data import Dataset

SAMPLES = 60_000  # too many for the caches: threads then drift apart

framework, times = sys.argv[1], int(sys.argv[2])
params = Params(threads=4, device="cpu")
environment.apply(framework, Config(params=params))
draw = np.random.default_rng(0)
images = draw.integers(0, 256, (SAMPLES, 28, 28)).astype(np.uint8)
labels = draw.integers(0, 10, SAMPLES).astype(np.int32)
dataset = Dataset("mnist", images, labels, images, labels, Path(), {})
trainer = importlib.import_module(f"mnist_{framework}").Trainer(params, dataset)
batches = draw.integers(0, SAMPLES, (40, 64)).astype(np.int32)
keep = draw.integers(0, 2, (40, 64, 70)).astype(np.uint8)
found = set()
for _ in range(times):
    trainer.load_state(randomness.initial_state(0, "lenet", "sgd"))
    losses = trainer.steps(batches, keep)
    found.add(fingerprint(trainer.state() | {"losses": losses}))
print(len(found))
