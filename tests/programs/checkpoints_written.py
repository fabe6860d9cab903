"""A training that writes checkpoints: python checkpoints_written.py FOLDER MODE.

`each`: one file, written over after each step; `folders`: one for every second step, of which old ones go; `forked`: by a child;
`unreadable`: a link that leads nowhere.
"""

import os
import sys
from pathlib import Path

import numpy as np

import repro

out, mode = Path(sys.argv[1]), sys.argv[2]
out.mkdir(exist_ok=True)
(out / "0.npy").write_bytes(b"there before")
for step in range(1, 7):
    repro.watch(step, {"w": np.full(3, step)})
    if mode == "folders" and step % 2 == 0:
        (out / f"step-{step}").mkdir()
        np.save(out / f"step-{step}" / "w.npy", step)
        if step > 4:
            (out / "step-2" / "w.npy").unlink()
            (out / "step-2").rmdir()
    elif mode == "each":
        np.save(out / "w.npy", step)
    elif mode == "forked" and step == 3:
        if os.fork() == 0:
            np.save(out / "w.npy", step)
            repro.watch(step, {"w": np.full(3, step)})
            np.save(out / "w.npy", step + 1)
            repro.watch(step + 1, {"w": np.full(3, step)})
            os._exit(0)
        os.wait()
    elif mode == "unreadable" and step == 3:
        np.save(out / "w.npy", step)
        (out / "w.npy").rename(out / "x.npy")
        os.symlink(out / "x.npy" / "below", out / "w.npy")
