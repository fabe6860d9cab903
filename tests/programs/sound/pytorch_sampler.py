"""A sound training in PyTorch: DistributedSampler, whose epoch is set, and checkpoints at the end of each epoch."""

import os
import sys
import time

import torch

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(48, 8), torch.randint(3, (48,)))
sampler = torch.utils.data.DistributedSampler(data, num_replicas=1, rank=0, seed=3)
loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, 36)
parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    done = kept["epoch"]
for epoch in range(done, 6):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        schedule.step()
    torch.save({"epoch": epoch + 1} | {name: part.state_dict() for name, part in parts.items()}, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
