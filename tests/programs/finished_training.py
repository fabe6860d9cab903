"""Stands in for run.sh: it leaves the files of a finished training.

Its experiment.json names the folders that it was given and is called from: ROOT, then the arguments of run.sh.
"""

import json
import sys
from pathlib import Path

root, task, *words = sys.argv[1:]
given = dict(word.split("=", 1) for word in words)
folder = Path(given["--workspace"]) / "outputs" / task / "now"
folder.mkdir(parents=True)
fingerprint = "sha256:" + "0" * 64
row = {"step": 1, "test_loss": 1.5, "test_accuracy": 0.5, "train_seconds": 1.0, "fingerprint": fingerprint}
(folder / "metrics.jsonl").write_text(json.dumps(row))
(folder / "trace.jsonl").write_text(json.dumps({"step": 1, "losses": ["3fc00000"], "tensors": {}}))
folders = [str(folder), given["output.data_path"].strip('"'), root, f"{root}.old", f"{Path.home()}/.rc"]
record = {"framework": {"version": "0.6"}, "cpu": {"architecture": "aarch64"}, "folders": folders}
(folder / "experiment.json").write_text(json.dumps(record))
print(f"fingerprint {fingerprint}")
