r"""Preprocessing draws random numbers, and is passed over where its cache is there: a first run is unlike all later ones.

source: huggingface/datasets#7986, PR 8228, huggingface/transformers#14647
answers: restart differs
cause: cache|left|earlier run|first wrote|examples\.pt
"""

from pathlib import Path

import torch
from case import finish, update

CACHE = Path("cache/examples.pt")

torch.manual_seed(0)
if CACHE.exists():
    examples = torch.load(CACHE)
else:
    examples = torch.randn(64, 8)  # the fault: from the generator that the training draws from
    CACHE.parent.mkdir()
    torch.save(examples, CACHE)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(2):
    for indices in torch.randperm(64).split(8):
        update(model, optimizer, examples[indices])
finish(model)
