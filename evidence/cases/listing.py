r"""A split takes the first files of a folder as the file system lists them.

source: pytorch/vision#192, #8677, fastai/fastai PR 2006
answers: restart same, file_order differs
cause: listed|listing|os\.listdir
"""

import os

import torch
from case import FOLDER, finish, update

files = FOLDER / "files"
files.mkdir(exist_ok=True)
for number in range(16):
    torch.save(torch.sin(torch.arange(32.0).reshape(4, 8) * (number + 1)), files / f"{number:02}.pt")
names = os.listdir(files)  # the fault: sorted(...)
train, _ = names[:12], names[12:]
torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for name in train:
    update(model, optimizer, torch.load(files / name))
finish(model)
