"""An evaluation casts the network to half precision and back: each one rounds the weights that are trained.

source: none; a usual way to evaluate in half precision
vary: evaluate=--evaluate={}:1000,5
answers: restart same, evaluate differs
cause: something other than the optimizer changed them.*float16
"""

import torch
from case import finish, option, update

torch.manual_seed(0)
batches, samples = torch.randn(24, 16, 8), torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(24):
    update(model, optimizer, batches[step])
    if (step + 1) % option("evaluate", 1000) == 0:
        with torch.no_grad():
            print(f"step {step}: loss {model.half()(samples.half()).float().square().mean():.4f}")
        model.float()  # the fault: what was rounded stays so
finish(model)
