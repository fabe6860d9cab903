"""The loader of an evaluation leaves the last, smaller batch out: another size of batches scores other samples.

source: thuml/Autoformer#104, verl-project/verl#78, ai2cm/ace#647
vary: batch=--batch={}:30,40
answers: restart same, batch differs
cause: the last, smaller batch is left out
"""

import torch
from case import option
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
samples = TensorDataset(torch.randn(100, 8), torch.randint(2, (100,)))
model = torch.nn.Linear(8, 2).eval()
right = total = 0
with torch.no_grad():
    for given, label in DataLoader(samples, option("batch", 16), drop_last=True):  # the fault
        right += int((model(given).argmax(1) == label).sum())
        total += len(label)
print(f"accuracy: {right / total:.6f}")
