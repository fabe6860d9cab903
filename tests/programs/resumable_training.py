"""A small training in PyTorch that can be resumed; with --forget it loses the optimizer's state."""

import argparse
import os
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--resume", action="store_true")
parser.add_argument("--forget", action="store_true")
parser.add_argument("--pause", type=float, default=0.0)
options = parser.parse_args()

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
path, step = os.path.join(options.out, "checkpoint.pt"), 0
if options.resume:
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    torch.set_rng_state(kept["generator"])
    step = kept["step"]
    if not options.forget:
        optimizer.load_state_dict(kept["optimizer"])
while step < 12:
    inputs, labels = torch.randn(512, 64), torch.randint(10, (512,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    step += 1
    if step % 2 == 0:
        kept = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
            "generator": torch.get_rng_state(),
        }
        torch.save(kept, f"{path}.new")
        os.replace(f"{path}.new", path)
    time.sleep(options.pause)
print("trained", flush=True)
