r"""Each data set's seed is `hash(name)`, which Python changes in each process.

source: for-all-dev/git-history-evals#120, proteneer/timemachine PR 983, wandb/docs PR 3072
answers: restart differs
cause: hash\(\), decides
"""

import torch
from case import finish, update

torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for name in ("train", "extra"):
    generator = torch.Generator().manual_seed(hash(name) % 2**32)  # the fault
    for _ in range(8):
        update(model, optimizer, torch.randn(16, 8, generator=generator))
finish(model)
