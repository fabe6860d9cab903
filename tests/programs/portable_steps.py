"""A few steps of a small network that knows nothing of us; prints the SHA-256 of its weights.

Sums are long enough to be split among threads. `--workers` are those of the DataLoader, `--histogram` uses an operation that
has no portable form.
"""

import argparse
import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def numbers(*shape: int) -> torch.Tensor:
    """Numbers from -0.5 to 0.5 without a pattern, and without a generator."""
    count = torch.tensor(shape).prod().item()
    return (torch.arange(count) * 7919 % 10007 / 10007 - 0.5).reshape(shape)


def collate(samples: list) -> list:
    """A batch, with a sum that a worker computes."""
    images, labels = (torch.stack(part) for part in zip(*samples, strict=True))
    return [images - images.mean(), labels]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--histogram", action="store_true")
    options = parser.parse_args()
    model = nn.Sequential(nn.Linear(500, 200), nn.GELU(), nn.Linear(200, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(numbers(*parameter.shape) / 10)
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(numbers(600, 500), torch.arange(600) % 10)
    for images, labels in DataLoader(data, 200, num_workers=options.workers, collate_fn=collate):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    print(hashlib.sha256(weights).hexdigest(), flush=True)
    if options.histogram:
        torch.histogram(next(model.parameters()).detach(), 4)


if __name__ == "__main__":
    main()
