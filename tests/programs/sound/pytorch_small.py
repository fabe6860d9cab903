"""A sound training in PyTorch: dropout, momentum, and a loader whose place in the data a resumed run finds again."""

import os
import sys
import time

import torch

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(48, 8), torch.randint(3, (48,)))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])
    done = kept["step"]
for step, (inputs, labels) in enumerate(torch.utils.data.DataLoader(data, batch_size=4)):
    if step < done:
        continue
    if done and step == done:  # a loader that begins has drawn from the generator
        torch.set_rng_state(kept["generator"])
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    kept = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": torch.get_rng_state(),
        "step": step + 1,
    }
    torch.save(kept, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
