"""A checkpoint is evaluated as it is read, and the network stays in eval mode: dropout is off from then on.

source: MILVLG/mcan-vqa#26, fartashf/vsepp#4
answers: restart same, kill differs
cause: eval mode
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
batches, samples = torch.randn(40, 16, 8), torch.randn(32, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 4))
optimizer, begin = torch.optim.AdamW(model.parameters(), lr=0.01), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])
    begin = kept["step"]
    model.eval()  # the fault: and not back
    with torch.no_grad():
        print("resumed at", model(samples).square().mean().item())
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    if step % 4 == 3:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, generator=torch.get_rng_state(), step=step + 1)
finish(model)
