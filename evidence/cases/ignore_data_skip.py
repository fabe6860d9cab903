r"""The place in the data is given up on purpose, to begin sooner: a resumed run starts its epoch's order again.

source: huggingface/transformers PR 8878, #31044
answers: restart same, kill differs
cause: batch.*(that|those) of steps? \d+|place in the data
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader, RandomSampler

torch.manual_seed(0)
examples = torch.randn(256, 8)
model = torch.nn.Linear(8, 4)
optimizer, done = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    done = kept["step"]
order = RandomSampler(examples, generator=torch.Generator().manual_seed(7))
for batch in DataLoader(examples, 8, sampler=order):  # the fault: none is passed over
    if done == 32:
        break
    update(model, optimizer, batch)
    done += 1
    if done % 4 == 0:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=done)
finish(model)
