"""Without a fault: weights are clipped after each step, and the checkpoint holds the clipped ones.

source: none; a control, as a WGAN's critic
answers: restart same, resume same, kill same
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.RMSprop(model.parameters(), 0.01)
begin = 0
if state := restored():
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    begin = state["step"]
for step in range(begin, 40):
    update(model, optimizer, torch.randn(16, 6, generator=torch.Generator().manual_seed(step)))
    for parameter in model.parameters():
        parameter.data.clamp_(-0.05, 0.05)
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
