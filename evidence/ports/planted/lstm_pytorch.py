"""An LSTM that sorts series into classes, in PyTorch.

python lstm_pytorch.py DATA.npz
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
        self.lstm, self.dense = nn.LSTM(6, 12, batch_first=True), nn.Linear(12, 3)
        # PyTorch adds two biases, so that their sum would learn twice as fast as the one of Keras and Flax.
        nn.init.zeros_(self.lstm.bias_hh_l0).requires_grad_(False)

    def forward(self, series: Tensor) -> Tensor:
        states, _ = self.lstm(series)
        return self.dense(states[:, -1])


network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name}, strict=False)
optimizer = torch.optim.SGD([weight for weight in network.parameters() if weight.requires_grad], lr=0.1, momentum=0.9)
series, labels = torch.from_numpy(data["series"]), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(series.split(8), labels.split(8), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
