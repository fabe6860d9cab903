"""The data are shuffled after they were split, by a seed of each part: the order depends on the number of parts.

source: locuslab/open-unlearning#144, mosaicml/composer#301
vary: parts=--parts={}:1,2
answers: restart same, parts differs
cause: only this option was changed
"""

import torch
from case import finish, option, update

torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
parts = option("parts", 1)
for epoch in range(2):
    orders = []
    for part, indices in enumerate(torch.arange(64).chunk(parts)):
        generator = torch.Generator().manual_seed(100 * epoch + part)
        orders.append(indices[torch.randperm(len(indices), generator=generator)].split(8 // parts))
    for pieces in zip(*orders, strict=True):
        update(model, optimizer, examples[torch.cat(pieces)])
finish(model)
