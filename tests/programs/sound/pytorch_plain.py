"""A sound training in PyTorch: plain gradient descent on batches that NumPy draws; a checkpoint every third step."""

import os
import sys
import time

import numpy as np
import torch

torch.manual_seed(0)
np.random.seed(0)
inputs, labels = torch.randn(64, 8), torch.randint(3, (64,))
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    np.random.set_state(("MT19937", kept["numpy"].numpy(), kept["place"], 0, 0.0))
    done = kept["step"]
for step in range(done, 24):
    chosen = torch.from_numpy(np.random.randint(0, 64, 16))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
    optimizer.step()
    if step % 3 == 2:
        mt = np.random.get_state(legacy=False)["state"]
        kept = {"model": model.state_dict(), "numpy": torch.from_numpy(mt["key"]), "place": mt["pos"], "step": step + 1}
        torch.save(kept, f"{path}.new")
        os.replace(f"{path}.new", path)
        time.sleep(float(os.environ.get("PAUSE", "0.05")))
