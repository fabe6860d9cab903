"""An evaluation without `model.eval()`: each batch is normalized by its own statistics, so a score depends on the size of batches.

source: milesial/Pytorch-UNet#31, fxia22/pointnet.pytorch PR 19, layumi/Person_reID_baseline_pytorch#218
vary: batch=--batch={}:13,26
answers: restart same, batch differs
cause: takes the statistics of each batch
"""

import torch
from case import option

torch.manual_seed(0)
samples, labels = torch.randn(104, 8), torch.randint(2, (104,))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
right, size = 0, option("batch", 8)
with torch.no_grad():  # the fault: the network is in training mode
    for begin in range(0, 104, size):
        given, label = samples[begin : begin + size], labels[begin : begin + size]
        right += int((model(given).argmax(1) == label).sum())
print(f"accuracy: {right / 104:.6f}")
