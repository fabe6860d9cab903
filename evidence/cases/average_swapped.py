"""The averaged weights are swapped in while the checkpoint is written: a resumed run trains on from the average.

source: ai2cm/ace PR 819, SchNetPack PR 785
answers: restart same, kill differs
cause: (weights).*(no step of|average)
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from case import finish, restored, save, update
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
average, begin = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), 0


@contextmanager
def averaged_weights() -> Iterator[None]:
    """Meanwhile the model has the averaged weights, as for an evaluation."""
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(average.module.state_dict())
    yield
    model.load_state_dict(own)


if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    average.load_state_dict(kept["average"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    average.update_parameters(model)
    if step % 4 == 3:
        with averaged_weights():  # the fault: the checkpoint belongs outside
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(**state, average=average.state_dict(), step=step + 1)
finish(model)
