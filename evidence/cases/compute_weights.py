"""The optimizer's main weights are restored, the copy that computes is not refreshed: the first gradients are those of new weights.

source: NVIDIA-NeMo/Megatron-Bridge PR 3397
answers: restart same, kill differs
cause: copy|copies|compute|module
"""

from typing import Any

import torch
from case import finish, restored, save


class MainWeights:
    """SGD on float64 weights; the model computes with copies in float32."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.copies = list(model.parameters())
        self.weights = [copy.detach().double().requires_grad_() for copy in self.copies]
        self.optimizer = torch.optim.SGD(self.weights, lr=0.05, momentum=0.9)

    @torch.no_grad()
    def step(self) -> None:
        for weight, copy in zip(self.weights, self.copies, strict=True):
            assert copy.grad is not None
            weight.grad, copy.grad = copy.grad.double(), None
        self.optimizer.step()
        for weight, copy in zip(self.weights, self.copies, strict=True):
            copy.copy_(weight)

    def state_dict(self) -> dict[str, Any]:
        return {"weights": [weight.detach() for weight in self.weights], "optimizer": self.optimizer.state_dict()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        for weight, kept in zip(self.weights, state["weights"], strict=True):
            weight.copy_(kept)  # the fault: and not the copy
        self.optimizer.load_state_dict(state["optimizer"])


torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
main, begin = MainWeights(model), 0
if kept := restored():
    main.load_state_dict(kept["main"])
    begin = kept["step"]
for step in range(begin, 40):
    model(batches[step]).square().mean().backward()
    main.step()
    if step % 4 == 3:
        save(main=main.state_dict(), step=step + 1)
finish(model)
