"""Lookahead holds slow weights beside its state: the state is saved, the slow weights begin anew from the resumed ones.

source: kozistr/pytorch_optimizer PR 310, tensorflow/addons PR 2102, mgrankin/over9000#6
answers: restart same, kill differs
cause: optimizer of the resumed run holds what is not in its state
"""

from typing import Any

import torch
from case import finish, restored, save, update


class Lookahead(torch.optim.SGD):
    """Every six steps the weights go half the way from the slow ones."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.weights = [weight for group in self.param_groups for weight in group["params"]]
        self.count = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        if not hasattr(self, "slow"):
            self.slow = [weight.clone() for weight in self.weights]  # the fault: not in state_dict()
        super().step(closure)
        self.count += 1
        if self.count % 6 == 0:
            for weight, slow in zip(self.weights, self.slow, strict=True):
                slow.lerp_(weight, 0.5)
                weight.copy_(slow)


torch.manual_seed(0)
batches = torch.randn(48, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer, begin = Lookahead(model.parameters(), lr=0.1, momentum=0.9), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = optimizer.count = kept["step"]
for step in range(begin, 48):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
