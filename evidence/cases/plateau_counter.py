"""A plateau schedule's state has its best loss, but not how many epochs were worse: the rate falls epochs later than it should.

source: huggingface/pytorch-image-models#871, PR 2756
answers: restart same, kill differs
cause: (learning rate|`?lr`?|schedule)
"""

import torch
from case import finish, restored, save, update


class Plateau:
    """Divides the learning rate by two after some epochs without a better loss."""

    def __init__(self, optimizer: torch.optim.Optimizer, patience: int) -> None:
        self.optimizer, self.patience = optimizer, patience
        self.best, self.worse = float("inf"), 0

    def step(self, loss: float) -> None:
        self.worse = 0 if loss < self.best else self.worse + 1
        self.best = min(self.best, loss)
        if self.worse > self.patience:
            self.worse = 0
            for group in self.optimizer.param_groups:
                group["lr"] /= 2

    def state_dict(self) -> dict[str, float]:
        return {"best": self.best}  # the fault: not `worse`

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.best = state["best"]


torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
plateau, begin = Plateau(optimizer, patience=9), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    plateau.load_state_dict(kept["plateau"])
    begin = kept["epoch"]
for epoch in range(begin, 24):
    generator = torch.Generator().manual_seed(epoch)
    for indices in torch.randperm(64, generator=generator).split(32):
        update(model, optimizer, examples[indices])
    plateau.step(1.0)  # a loss that stays as it is
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "plateau": plateau.state_dict()}
    save(**state, epoch=epoch + 1)
finish(model)
