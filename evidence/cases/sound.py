"""Without a fault: all that a step rests on is saved, in the middle of an epoch and of an accumulation window.

source: none; a control
answers: restart same, resume same, kill same
"""

import random

import torch
from case import finish, restored, save
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
random.seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
scaler = torch.amp.GradScaler("cpu", growth_interval=5)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "scaler": scaler, "average": average}
orders, begin = torch.stack([torch.randperm(64) for _ in range(10)]), 0
if kept := restored():
    for name, part in parts.items():
        part.load_state_dict(kept[name])  # type: ignore[attr-defined]
    for parameter, gradient in zip(model.parameters(), kept["gradients"], strict=True):
        parameter.grad = gradient
    torch.set_rng_state(kept["torch"])
    random.setstate(kept["python"])
    begin = kept["number"]
for number in range(begin, 80):
    indices = orders[number // 8].view(8, 8)[number % 8]
    batch = examples[indices] * random.choice([1, -1])
    scaler.scale(model(batch).square().mean() / 2).backward()
    if number % 2:
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        average.update_parameters(model)
        optimizer.zero_grad()
    if number % 7 == 6:
        states = {name: part.state_dict() for name, part in parts.items()}  # type: ignore[attr-defined]
        gradients = [parameter.grad for parameter in model.parameters()]
        random_states = {"torch": torch.get_rng_state(), "python": random.getstate()}
        save(**states, **random_states, gradients=gradients, number=number + 1)
finish(model)
