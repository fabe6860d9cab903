"""A sound training in PyTorch: a data set that draws from a generator of NumPy of its own, and a cyclic momentum."""

import os
import sys
import time
from typing import Any

import numpy as np
import torch


class Noisy(torch.utils.data.Dataset[Any]):
    """Samples with noise."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.samples = torch.randn(64, 8)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        noise = torch.from_numpy(self.random.normal(scale=0.1, size=8)).float()
        return self.samples[index] + noise, index % 3


torch.manual_seed(0)
data = Noisy()
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)
schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=5)
parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    data.random.bit_generator.state = kept["random"]
    done = kept["step"]
rest = torch.utils.data.Subset(data, range(done * 4, len(data)))
for step, (inputs, labels) in enumerate(torch.utils.data.DataLoader(rest, batch_size=4), done):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    schedule.step()
    kept = {"step": step + 1, "random": data.random.bit_generator.state}
    torch.save(kept | {name: part.state_dict() for name, part in parts.items()}, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
