"""A training whose batches come from no DataLoader, eager and then compiled.

It prints the hashes of the batches of each step, and what the compiler was given.
"""

import json

import torch
from hashes import sha
from torch import nn


class Network(nn.Module):
    """One that is called with arguments by name, and calls itself within its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor, targets: torch.Tensor = None, weight: float = 1.0) -> torch.Tensor:
        return weight * nn.functional.cross_entropy(self.body(x), targets)


def show(graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
    print(json.dumps(["graph", graph.code, len(inputs)]))
    return graph


torch.manual_seed(0)
model = Network()
average = torch.optim.swa_utils.AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for compiled in (False, True):
    network = torch.compile(model, backend=show) if compiled else model
    for _ in range(3):
        optimizer.zero_grad()
        seen = {}
        for place in range(2):  # two backward passes to a step
            x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
            with torch.no_grad():
                network(x + 1, targets=y)
            network(x, targets=y).backward()
            seen |= {f"{place}.0": x.numpy(), f"{place}.targets": y.numpy()}
        optimizer.step()
        average.update_parameters(model)
        print(json.dumps(["batch", {name: sha(array) for name, array in seen.items()}]))
