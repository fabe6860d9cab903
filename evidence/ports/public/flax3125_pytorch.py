"""A classifier of sentences with PyTorch's own initial weights: after google/flax issue 3125.

python flax3125_pytorch.py DATA.npz
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
        self.embedding = nn.Embedding(200, 64)
        self.dense1, self.dense2 = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.dense2(functional.relu(self.dense1(self.embedding(tokens).mean(1))))


torch.manual_seed(0)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
tokens, labels = torch.from_numpy(data["tokens"]).long(), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(tokens.split(8), labels.split(8), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
