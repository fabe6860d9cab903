"""The generators are restored as they were in the middle of the epoch, but its order was drawn at its beginning.

source: wyim-pgl/transgenic#59
answers: restart same, kill differs
cause: (orders the epoch anew|order.*drawn|middle of|mid-epoch|restored.*(drew|drawn|order)).*
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader

torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(examples, 8, shuffle=True)
step = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])  # and the loader draws the order from it
    step = kept["step"]
skipped = step % 8
while step < 32:
    for done, batch in enumerate(loader, 1):
        if done <= skipped:
            continue
        update(model, optimizer, batch)
        step += 1
        if step % 3 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(**state, generator=torch.get_rng_state(), step=step)
    skipped = 0
finish(model)
