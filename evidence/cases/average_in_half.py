"""The average is written to the checkpoint in half precision.

source: ultralytics/yolov5 PR 2292, d8ahazard/sd_dreambooth_extension PR 1417
answers: restart same, kill differs
cause: float16.*rounded|rounded to float16
"""

import torch
from case import finish, restored, save, update
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
batches = torch.randn(40, 16, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
average, begin = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    average.module.load_state_dict(kept["average"])
    average.n_averaged.fill_(kept["step"])
    begin = kept["step"]
for step in range(begin, 40):
    update(model, optimizer, batches[step])
    average.update_parameters(model)
    if step % 4 == 3:
        halved = {name: tensor.half() for name, tensor in average.module.state_dict().items()}  # the fault
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), average=halved, step=step + 1)
finish(average.module)
