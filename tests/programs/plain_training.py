"""A training in plain Python, which `repro.watch` shows; --seed chooses its noise."""

import random
import sys

import repro

seed = next((word.removeprefix("--seed=") for word in sys.argv[1:] if word.startswith("--seed=")), "0")
noise = random.Random(seed)
weight = 1.0
for step in range(1, 9):
    weight -= 0.1 * (weight - 2 + noise.gauss(0, 0.1))
    repro.watch(step, {"weight": weight})
