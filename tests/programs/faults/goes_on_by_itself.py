"""Goes on from what it finds in the current folder: a second run has nothing left to do."""

from pathlib import Path

import repro

kept = Path("weight")
step, weight = (int(text) for text in kept.read_text().split()) if kept.exists() else (0, 1)
while step < 5:
    step, weight = step + 1, weight * 3
    repro.watch(step, {"weight": weight})
    kept.write_text(f"{step} {weight}")
