"""Later epochs are shuffled by the global generator, which the checkpoint does not hold.

source: huggingface/transformers#8874, #11323
answers: restart same, kill differs
cause: generator.*not restored
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import DataLoader

torch.manual_seed(42)
examples = torch.randn(64, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(examples, 8, shuffle=True)
step, last = 0, 32
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    step = kept["step"]
skipped = step % 8
while step < last:
    for done, batch in enumerate(loader, 1):
        if done <= skipped:
            continue
        update(model, optimizer, batch)
        step += 1
        if step % 3 == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step)
    skipped = 0
finish(model)
