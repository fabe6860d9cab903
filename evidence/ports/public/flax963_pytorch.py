"""The beginning of a ResNet, in PyTorch: after google/flax issue 963.

python flax963_pytorch.py DATA.npz
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


def batch_norm(size: int) -> nn.BatchNorm2d:
    """Keeps no running variance: PyTorch's and Flax' differ, which is another case."""
    return nn.BatchNorm2d(size, track_running_stats=False)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), batch_norm(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), batch_norm(16)
        self.downsample = nn.Conv2d(8, 16, 1, stride=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), batch_norm(8)
        self.maxpool, self.layer2 = nn.MaxPool2d(3, stride=2, padding=1), Block()
        self.fc = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(functional.relu(self.bn1(self.conv1(images))))
        return self.fc(self.layer2(x).mean((2, 3)))


network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name})
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
images, labels = torch.from_numpy(data["images"]).permute(0, 3, 1, 2), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(images.split(4), labels.split(4), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
