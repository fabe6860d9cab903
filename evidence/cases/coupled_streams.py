"""The model's initialization draws from the generator that orders the data: with a wider model come other batches.

source: DeepLearnPhysics/lartpc_mlreco3d#27
vary: width=--width={}:16,24
answers: restart same, width differs
cause: generator|drew|draws
"""

import torch
from case import finish, option, update
from torch.utils.data import DataLoader

torch.manual_seed(0)
examples = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
width = option("width", 16)
model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(2):
    for batch in DataLoader(examples, 8, shuffle=True):
        update(model, optimizer, batch)
finish(model)
