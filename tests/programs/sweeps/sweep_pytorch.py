"""Trainings with several learning rates, one after another; `--leak` says what one leaves to the next."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--rates", type=float, nargs="+", required=True)
parser.add_argument("--leak", choices=["generator", "data", "model", "setting"])
options = parser.parse_args()

torch.manual_seed(0)
INPUTS, SETTINGS = torch.randn(64, 4), {"weight_decay": 0.0}
LABELS = (INPUTS.sum(1) > 0).long()
MODEL = torch.nn.Linear(4, 2)


def train(rate: float) -> None:
    if options.leak != "generator":
        torch.manual_seed(1)
    if options.leak == "data":
        INPUTS.mul_(1.5)
    if options.leak == "setting":
        SETTINGS["weight_decay"] += 0.25
    model = MODEL if options.leak == "model" else torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, **SETTINGS)
    data = torch.utils.data.TensorDataset(INPUTS, LABELS)
    for _ in range(2):
        for inputs, labels in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


for rate in options.rates:
    train(rate)
