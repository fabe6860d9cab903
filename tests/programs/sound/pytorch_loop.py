"""A sound training in PyTorch: dropout, momentum, a schedule, a scaler of the loss, an average, batch normalization.

It restores all of it, and the place in the data: a loader with a generator of its own, of which a resumed run passes
over the batches of the epoch that it has trained on.
"""

import argparse
import copy
import os
import random
import time
from typing import Any

import numpy
import torch

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--resume", action="store_true")
options = parser.parse_args()

random.seed(0)
numpy.random.seed(0)
torch.manual_seed(0)
inputs, labels = torch.randn(96, 8), torch.randint(3, (96,))
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3)
)
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
scaler = torch.amp.GradScaler("cpu", init_scale=1000.0, growth_factor=1.3, growth_interval=3)
shuffling = torch.Generator().manual_seed(5)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, labels), batch_size=16, shuffle=True, generator=shuffling
)
path, done = os.path.join(options.out, "checkpoint.pt"), 0
if options.resume:
    kept = torch.load(path)
    for name, part in (("model", model), ("average", average), ("optimizer", optimizer), ("schedule", schedule)):
        part.load_state_dict(kept[name])
    scaler.load_state_dict(kept["scaler"])
    random.setstate(kept["python"])
    state: Any = kept["numpy"]
    numpy.random.set_state((state[0], state[1].numpy(), *state[2:]))
    shuffling.set_state(kept["shuffling"])
    done = kept["step"]
for epoch in range(max(done - 1, 0) // len(loader), 4):  # a loader draws once more when it ends
    begun = shuffling.get_state()
    for place, (batch, wanted) in enumerate(loader):
        if epoch * len(loader) + place < done:
            continue
        if options.resume and epoch * len(loader) + place == done:  # passing over batches has drawn from it
            torch.set_rng_state(kept["torch"])
        noise = torch.from_numpy(numpy.random.normal(scale=0.1, size=batch.shape)).float()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model((batch + noise) * random.uniform(0.9, 1.1)), wanted)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.1)
        state = numpy.random.get_state()
        kept_now = {
            "model": model.state_dict(),
            "average": average.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "scaler": scaler.state_dict(),
            "python": random.getstate(),
            "numpy": (state[0], torch.from_numpy(state[1]), *state[2:]),
            "torch": torch.get_rng_state(),
            "shuffling": begun,
            "step": epoch * len(loader) + place + 1,
        }
        torch.save(kept_now, f"{path}.new")
        os.replace(f"{path}.new", path)
        time.sleep(float(os.environ.get("PAUSE", "0.05")))
print("trained")
