"""Two layers of GRU, in PyTorch: after keras-team/keras issue 15915.

python keras15915_pytorch.py DATA.npz
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.dense = nn.GRU(6, 12, num_layers=2, batch_first=True), nn.Linear(12, 3)

    def forward(self, series: Tensor) -> Tensor:
        states, _ = self.gru(series)
        return self.dense(states[:, -1])


network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name})
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
series, labels = torch.from_numpy(data["series"]), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(series.split(8), labels.split(8), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
