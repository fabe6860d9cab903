"""A convolutional network with batch norm, in PyTorch.

python pytorch.py DATA.npz [--fault FAULT]
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("variance", "pooling"))
options = parser.parse_args()
data = np.load(options.data)


class BatchNorm(nn.BatchNorm2d):
    """Keeps the biased variance, as Flax and Keras do; PyTorch's own divides by n - 1."""

    def forward(self, x: Tensor) -> Tensor:
        kept, count = (1 - self.momentum) * self.running_var, x.numel() / x.shape[1]
        y = super().forward(x)
        self.running_var = kept + (self.running_var - kept) * ((count - 1) / count)
        return y


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if options.fault == "variance" else BatchNorm
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), norm(8)
        # PyTorch's own default counts the zeros of the padding.
        self.pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=options.fault == "pooling")
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), norm(16)
        self.dense = nn.Linear(16 * 6 * 6, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.pool(functional.relu(self.norm1(self.conv1(images))))
        x = functional.relu(self.norm2(self.conv2(x)))
        return self.dense(x.flatten(1))


images = torch.from_numpy(((data["images"] / 255 - 0.45) / 0.25).astype(np.float32)).permute(0, 3, 1, 2)
labels = torch.from_numpy(data["labels"]).long()
network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name}, strict=False)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
losses = []
for batch, truth in zip(images.split(8), labels.split(8), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
