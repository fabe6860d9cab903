"""The gradients of a half-done accumulation window are not in the checkpoint.

source: huggingface/transformers#22143, mosaicml/composer#3725, Nerogar/OneTrainer PR 1465
answers: restart same, kill differs
cause: backward passes|accumulation window|half-done
"""

import torch
from case import finish, restored, save

WINDOW = 4

torch.manual_seed(0)
batches = torch.randn(120, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["batches"]
for number in range(begin, 120):
    (model(batches[number]).square().mean() / WINDOW).backward()
    if number % WINDOW == WINDOW - 1:
        optimizer.step()
        optimizer.zero_grad()
    if number % 12 == 5:  # in the middle of a window
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), batches=number + 1)
finish(model)
