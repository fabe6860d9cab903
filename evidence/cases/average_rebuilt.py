"""The average is restored, and then made anew from the model as training begins.

source: Megvii-BaseDetection/YOLOX#1318
answers: restart same, kill differs
cause: average|copy of the weights
"""

import torch
from case import finish, restored, save, update
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
average, begin = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    average.load_state_dict(kept["average"])
    begin = kept["step"]
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))  # the fault
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    average.update_parameters(model)
    if step % 4 == 3:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state, average=average.state_dict(), step=step + 1)
finish(average.module)
