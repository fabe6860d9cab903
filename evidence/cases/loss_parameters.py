"""The loss has a parameter that is trained, as the weights of its terms, and the checkpoint has the network alone.

source: NCAR/miles-credit#473, ifzhang/FairMOT#364
answers: restart same, kill differs
cause: log_variance. is as the whole run began with
"""

import torch
from case import finish, restored, save


class Criterion(torch.nn.Module):
    """Squared errors, weighted by what is learned of each output."""

    def __init__(self) -> None:
        super().__init__()
        self.log_variance = torch.nn.Parameter(torch.zeros(3))

    def forward(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        errors = (outputs - targets).square().mean(0)
        return (errors * (-self.log_variance).exp() + self.log_variance).sum()


torch.manual_seed(0)
inputs, targets = torch.randn(40, 16, 8), torch.randn(40, 16, 3)
model, criterion = torch.nn.Linear(8, 3), Criterion()
optimizer, begin = torch.optim.AdamW([*model.parameters(), *criterion.parameters()], lr=0.01), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    optimizer.zero_grad()
    criterion(model(inputs[step]), targets[step]).backward()
    optimizer.step()
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)  # the fault: not the criterion
finish(model)
