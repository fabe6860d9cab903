"""Without a fault: the network grows by a layer, with a new optimizer, and a resumed run builds the grown one at once.

source: none; a control
answers: restart same, resume same, kill same
"""

import torch
from case import finish, restored, save, update
from torch import nn

torch.manual_seed(0)
layers: list[nn.Module] = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)]
state, begin = restored(), 0


def grow() -> None:
    layers[2:2] = [nn.Linear(8, 8), nn.Tanh()]


if state and state["layers"] > 3:
    grow()
model = nn.Sequential(*layers)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
if state:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    begin = state["step"]
    torch.set_rng_state(state["torch"])
for step in range(begin, 40):
    if step == 20 and len(layers) == 3:
        grow()
        model = nn.Sequential(*layers)
        optimizer = torch.optim.Adam(model.parameters(), 0.001)
    update(model, optimizer, torch.randn(16, 6))
    if step % 4 == 3:
        save(
            model=model.state_dict(),
            optimizer=optimizer.state_dict(),
            layers=len(layers),
            step=step + 1,
            torch=torch.get_rng_state(),
        )
finish(model)
