"""A multilayer perceptron with dropout and smoothed labels, in PyTorch.

python mlp_pytorch.py DATA.npz [--optimizer NAME] [--own-weights] [--fault FAULT]
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=("sgd", "adam", "adamw", "warmup"), default="sgd")
parser.add_argument("--own-weights", action="store_true", help="draw the initial weights; otherwise they are read")
parser.add_argument("--fault", choices=("decay",))
options = parser.parse_args()
data = np.load(options.data)


class Dropout(nn.Module):
    """Drops what a mask names, so that every framework drops the same."""

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        return x * keep / 0.75


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.dense2, self.dense3 = nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.dropout = Dropout()

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        x = self.dropout(functional.relu(self.dense1(x)), keep)
        return self.dense3(functional.relu(self.dense2(x)))


def draw(network: Network) -> None:
    """Draws weights of the variance 2 / fan_in (He et al. 2015)."""
    torch.manual_seed(0)
    for layer in (network.dense1, network.dense2, network.dense3):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)


def make_optimizer(network: Network) -> torch.optim.Optimizer:
    weights = network.parameters()
    if options.optimizer == "adam":
        return torch.optim.Adam(weights, lr=0.01, eps=1e-3)
    if options.optimizer == "adamw":
        # Adam adds the decay to the gradient; AdamW takes it from the weight itself.
        kind = torch.optim.Adam if options.fault == "decay" else torch.optim.AdamW
        return kind(weights, lr=0.01, weight_decay=0.1)
    return torch.optim.SGD(weights, lr=0.1, momentum=0.9)


rows, keep, labels = (torch.from_numpy(data[name][data["order"]]) for name in ("rows", "keep", "labels"))
network = Network()
if options.own_weights:
    draw(network)
else:
    network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name})
optimizer = make_optimizer(network)
steps = 4 if options.optimizer == "warmup" else 1
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / steps))
losses = []
for batch, kept, truth in zip(rows.split(16), keep.split(16), labels.long().split(16), strict=True):
    loss = functional.cross_entropy(network(batch, kept), truth, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
