"""The weights go through bfloat16 in the checkpoint: the masters of a resumed run have lost their last 16 bits.

source: TensorAuto/OpenTau#185, NVIDIA/apex PR 42
answers: restart same, kill differs
cause: hold only numbers of bfloat16
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Linear(8, 4)
optimizer, begin = torch.optim.AdamW(model.parameters(), lr=0.01), 0
if kept := restored():
    model.load_state_dict({name: weight.float() for name, weight in kept["model"].items()})
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        weights = {name: weight.bfloat16() for name, weight in model.state_dict().items()}  # the fault
        save(model=weights, optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
