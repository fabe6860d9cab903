"""Other vector instructions add in another order: other bits.

source: pytorch/pytorch#155423, #155552, google-deepmind/mujoco#2659
answers: restart same, instruction_set differs
cause: vector
"""

import torch
from case import finish, update

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 8)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(8):
    update(model, optimizer, torch.randn(32, 256))
finish(model)
