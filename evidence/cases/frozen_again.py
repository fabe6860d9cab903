"""A part of the network is trained from step 12 on; a resumed run freezes it again, as its script begins.

source: Lightning-AI/pytorch-lightning#21901, allenai/rslearn PR 199
answers: restart same, kill differs
cause: computes no gradients|frozen
"""

import torch
from case import finish, restored, save

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
backbone, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
model = torch.nn.Sequential(backbone, torch.nn.ReLU(), head)
backbone.requires_grad_(False)
optimizer, begin = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    if step == 12:  # the fault: and not where a later step is resumed from
        backbone.requires_grad_(True)
    optimizer.zero_grad()
    model(batches[step]).square().mean().backward()
    optimizer.step()
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
