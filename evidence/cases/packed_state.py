"""The optimizer's state is cast to fewer bits on its way through the checkpoint: the first loss is right, the first update is not.

source: databricks/flashoptim#3
answers: restart same, kill differs
cause: state of the optimizer|optimizer.*(not restored|bfloat16|dtype|cast)
"""

from typing import Any

import torch
from case import finish, restored, save, update


def packed(state: dict[str, Any]) -> dict[str, Any]:
    """The state with what is as large as a parameter in bfloat16."""
    moments = {
        number: {name: value.bfloat16() if value.dim() else value for name, value in each.items()}
        for number, each in state["state"].items()
    }
    return state | {"state": moments}


torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
begin = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=packed(optimizer.state_dict()), step=step + 1)
finish(model)
