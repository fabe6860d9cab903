"""To have the optimizer's state made before it is loaded, a step with zero gradients is done; the number of steps stays one ahead.

source: NVIDIA-NeMo/Megatron-Bridge PR 5680
answers: restart same, kill differs
cause: backward pass|without a|ahead
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
begin = 0
if kept := restored():
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    model.load_state_dict(kept["model"])
    for parameter, (mean, square) in zip(model.parameters(), kept["moments"], strict=True):
        optimizer.state[parameter]["exp_avg"].copy_(mean)
        optimizer.state[parameter]["exp_avg_sq"].copy_(square)
        optimizer.state[parameter]["step"] += kept["step"]  # the fault: the step that was just done counts, too
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        states = [optimizer.state[parameter] for parameter in model.parameters()]
        moments = [(state["exp_avg"], state["exp_avg_sq"]) for state in states]
        save(model=model.state_dict(), moments=moments, step=step + 1)
finish(model)
