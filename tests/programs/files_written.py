"""A small training in PyTorch that writes a checkpoint, a model, and logs; `--last` is what it does after its last step."""

import argparse
import json
import os
import time
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--last", choices=["nothing", "noise", "average", "id", "zip", "text", "array"], default="nothing")
parser.add_argument("--every", type=int, default=5)
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
start, began, losses = 0, time.time(), np.zeros(15)
if options.resume:
    checkpoint = torch.load(options.out / "checkpoint.pt")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start = checkpoint["step"]
rows = ["step,loss,elapsed"]
for step in range(start + 1, 16):
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    losses[step - 1] = loss.item()
    rows.append(f"{step},{loss.item()},{time.time() - began}")
    if step % options.every == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "time": time.time()}
        torch.save(state, options.out / "checkpoint.new")
        (options.out / "checkpoint.new").replace(options.out / "checkpoint.pt")
    time.sleep(0.03)
(options.out / "log.csv").write_text("\n".join(rows))
unseeded = torch.Generator()
unseeded.seed()
result = {name: value.clone() for name, value in model.state_dict().items()}
if options.last == "noise":
    result["2.bias"] += torch.rand(2, generator=unseeded)
elif options.last == "average":
    result["average"] = {name: value + torch.rand(value.shape, generator=unseeded) for name, value in result.items()}
elif options.last == "id":
    result["run_id"] = os.urandom(8).hex()
elif options.last == "zip":
    with zipfile.ZipFile(options.out / "code.zip", "w") as archive:
        archive.writestr(
            zipfile.ZipInfo("model.bin", (2000, 1, 1 + os.getpid() % 28, 0, 0, int(began) % 60)), b"weights"
        )
elif options.last == "text":
    (options.out / "notes.txt").write_text(f"began at {began}")
elif options.last == "array":
    np.save(options.out / "embedding.npy", np.frombuffer(os.urandom(8), np.uint8))
torch.save(result, options.out / "model.pt")
np.save(options.out / "losses.npy", losses)
(options.out / "results.json").write_text(json.dumps({"loss": loss.item(), "runtime": time.time() - began}))
(options.out / f"events.out.tfevents.{int(began)}.host.{os.getpid()}.0").write_bytes(os.urandom(64))
