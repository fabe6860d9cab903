"""Optimizers of torch.optim, each in its own run, with settings that Optax and Keras have as well.

python optimizers_pytorch.py DATA.npz --optimizer NAME
"""

import argparse

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional

OPTIMIZERS = {
    "sgd": lambda weights: optim.SGD(weights, lr=0.1),
    "momentum": lambda weights: optim.SGD(weights, lr=0.1, momentum=0.9),
    "nesterov": lambda weights: optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda weights: optim.Adam(weights, lr=0.01, eps=1e-12),
    "adamw": lambda weights: optim.AdamW(weights, lr=0.01, eps=1e-12, weight_decay=0.1),
    "rmsprop": lambda weights: optim.RMSprop(weights, lr=0.01, alpha=0.9, eps=1e-12),
    "adagrad": lambda weights: optim.Adagrad(weights, lr=0.1, initial_accumulator_value=0.1, eps=1e-12),
    "adadelta": lambda weights: optim.Adadelta(weights, lr=1.0, rho=0.95, eps=1e-6),
    "adamax": lambda weights: optim.Adamax(weights, lr=0.01, eps=1e-12),
    "centered": lambda weights: optim.RMSprop(weights, lr=0.01, alpha=0.9, eps=1e-12, momentum=0.9, centered=True),
    "nadam": lambda weights: optim.NAdam(weights, lr=0.01, eps=1e-12, momentum_decay=1.0),
}
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--optimizer", choices=OPTIMIZERS, required=True)
options = parser.parse_args()
data = np.load(options.data)

network = nn.Sequential()
for name, inputs, outputs in (("dense1", 32, 64), ("dense3", 64, 10)):
    network.add_module(name, nn.Linear(inputs, outputs))
    if name == "dense1":
        network.add_module("tanh", nn.Tanh())
network.load_state_dict(
    {name: torch.from_numpy(data[name]) for name in data if name.startswith(("dense1.", "dense3."))}
)
optimizer = OPTIMIZERS[options.optimizer](network.parameters())
rows, labels = torch.from_numpy(data["rows"]), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(rows.split(16), labels.split(16), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
