"""A training that `repro.watch` shows; with a word, its weights depend on the number of threads."""

import os
import sys

import torch

import repro

precision = repr(getattr(torch, "precision", None))
print(precision)
for step in range(1, 5):
    torch.computed("mm")
    threads = os.environ.get("OMP_NUM_THREADS") if sys.argv[1:] else None
    repro.watch(step, {"weight": step, "threads": repr(threads), "precision": precision})
