"""The replay buffer is not in the checkpoint: after a resume the batches come from an empty one that fills again.

source: DLR-RM/stable-baselines3#326, hill-a/stable-baselines#301
answers: restart same, kill differs
cause: place in the data|another batch
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
buffer: list[torch.Tensor] = []
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])
    begin = kept["step"]
for step in range(begin, 60):
    buffer.append(torch.sin(torch.arange(8.0) * (step + 1)))
    choice = torch.rand(8)
    batch = torch.stack([buffer[int(part * len(buffer))] for part in choice])
    update(model, optimizer, batch)
    if step % 4 == 3:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, generator=torch.get_rng_state(), step=step + 1)  # the fault: without `buffer`
finish(model)
