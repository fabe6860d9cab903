"""The average of the weights is restored, the count of its updates is not: its decay warms up once more.

source: lightly-ai/lightly-train PR 892, ultralytics/yolov5#310
answers: restart same, kill differs
cause: average|copy of the weights
"""

import copy

import torch
from case import finish, restored, save, update


class Average:
    """Exponential moving average of a model's weights, whose decay grows with the number of updates."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model, self.updates = copy.deepcopy(model), 0

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        self.updates += 1
        decay = min(0.99, (1 + self.updates) / (10 + self.updates))
        for mean, weight in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(weight, 1 - decay)


torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
average, begin = Average(model), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    average.model.load_state_dict(kept["average"])  # the fault: without `updates`
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    average.update(model)
    if step % 4 == 3:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, average=average.model.state_dict(), step=step + 1)
finish(average.model)
