r"""The first resume is right; the second starts the stream from the beginning, as the state that is saved is a stale one.

source: huggingface/datasets#8308, PR 8295
answers: restart same, kill same, resume_twice differs
cause: (second|twice).*|batch.*(that|those) of steps? \d+
"""

from typing import Any

import torch
from case import finish, restored, save, update


class Stream:
    """Batches without an end."""

    def __init__(self) -> None:
        self.position = {"next": 0}
        self.state = {"position": self.position}

    def state_dict(self) -> dict[str, Any]:
        return {"position": dict(self.state["position"])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.position = dict(state["position"])  # the fault: `self.state` has the old one from here on

    def __next__(self) -> torch.Tensor:
        batch = torch.randn(16, 8, generator=torch.Generator().manual_seed(self.position["next"]))
        self.position["next"] += 1
        return batch


torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
stream, begin = Stream(), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    stream.load_state_dict(kept["stream"])
    begin = kept["step"]
for step in range(begin, 60):
    update(model, optimizer, next(stream))
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), stream=stream.state_dict(), step=step + 1)
finish(model)
