"""A sound training in PyTorch: an average of the weights, AveragedModel, after a step schedule; batches are cut by hand."""

import os
import sys
import time

import torch

torch.manual_seed(0)
inputs, labels = torch.randn(16, 16, 8), torch.randint(3, (16, 16))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
average = torch.optim.swa_utils.AveragedModel(model)
optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.7)
parts = {"model": model, "average": average, "optimizer": optimizer, "schedule": schedule}
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    done = kept["step"]
for step in range(done, 16):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs[step]), labels[step]).backward()
    optimizer.step()
    schedule.step()
    average.update_parameters(model)
    torch.save({"step": step + 1} | {name: part.state_dict() for name, part in parts.items()}, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
