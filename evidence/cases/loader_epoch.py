r"""A rank's loader resumes at the right position of epoch 0's order: its count of epochs is not in its state.

source: huggingface/accelerate#4195
ranks: 2
answers: restart same, kill differs
cause: (order|batch).*(epoch|another place)|batch.*(that|those) of steps? \d+
"""

import os
from collections.abc import Iterator

import torch
from case import finish, restored, save, update
from torch.nn.parallel import DistributedDataParallel


class Loader:
    """This rank's part of the examples, in another order in each epoch."""

    def __init__(self, examples: torch.Tensor) -> None:
        self.examples, self.epoch, self.position = examples, 0, 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        order = torch.randperm(len(self.examples), generator=torch.Generator().manual_seed(self.epoch))
        batches = order[torch.distributed.get_rank() :: torch.distributed.get_world_size()].split(4)
        for indices in batches[self.position :]:
            self.position += 1
            yield self.examples[indices]
        self.epoch, self.position = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}  # the fault: not the epoch

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loader, step = Loader(torch.randn(64, 8)), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    loader.load_state_dict(kept["loader"])
    step = kept["step"]
while step < 32:
    for batch in loader:
        update(model, optimizer, batch)
        step += 1
        if step % 3 == 0 and torch.distributed.get_rank() == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), loader=loader.state_dict(), step=step)
        torch.distributed.barrier()
if torch.distributed.get_rank() == 0:
    finish(model)
torch.distributed.barrier()
os._exit(0)  # PyTorch 2.15 itself aborts now and then where the group ends
