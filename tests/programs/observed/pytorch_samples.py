"""Trainings whose samples are looked at, one after another."""

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

X = torch.arange(48.0).reshape(12, 4) / 48


class Noisy(Dataset):
    """Draws for each sample: what the sample's index decides, or anew each time."""

    def __init__(self, seeded):
        self.seeded = seeded

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        if self.seeded:
            numpy.random.seed(index)
        return X[index] + float(numpy.random.rand())


class Copied(IterableDataset):
    """A stream that each worker gives in whole."""

    def __iter__(self):
        return iter(X)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.live, self.dead = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        return self.live(x) + 0 * self.dead(x)


def train(loader, epochs=2, scale=1.0):
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            (scale * model(batch[0] if isinstance(batch, list) else batch).square().mean()).backward()
            optimizer.step()


torch.manual_seed(0)
numpy.random.seed(0)
train(DataLoader(Noisy(True), 3, shuffle=True))
train(DataLoader(Noisy(False), 4, shuffle=True))
train(DataLoader(TensorDataset(X, X), 5, shuffle=True, num_workers=1, persistent_workers=True))
train(DataLoader(Copied(), 6, num_workers=2), 1)
train(DataLoader(Noisy(False), 6, num_workers=1), 2)
train(DataLoader(X, 6, num_workers=1), 2)
with torch.no_grad():
    assert len([*DataLoader(X, 2)]) == 6
train([X], 3, float("nan"))
