"""A parameter is made by `torch.empty` and never filled: it holds what was in the memory before.

source: pytorch/pytorch#193317, PR 193700
answers: restart differs
cause: initiali[sz]ed|memory
"""

import torch
from case import finish, update


class Scaled(torch.nn.Module):
    """A layer and a table that is added to its output."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
        self.table = torch.nn.Parameter(torch.empty(300, 64))  # the fault: no torch.nn.init

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch) + self.table.nan_to_num(0, 0, 0).clamp(-1, 1).mean(0)


torch.manual_seed(0)
scratch = [torch.randn(300, 64) for _ in range(3)]
del scratch
model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    update(model, optimizer, torch.randn(4, 64))
finish(model)
