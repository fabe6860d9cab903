"""Train a small network on images that two workers change at random, and print what came of it.

    python ways [fork|spawn|forkserver]

Its folder is a program, a module, and what a zip file of an application holds; its text is a cell of a notebook.
"""

import hashlib
import multiprocessing
import sys

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2


class Images(Dataset[tuple[Tensor, int]]):
    """Images of bytes, each changed at random by the worker that loads it."""

    def __init__(self) -> None:
        self.images = torch.arange(32 * 3 * 20 * 24).mul(7919).remainder(251).to(torch.uint8).view(32, 3, 20, 24)
        self.change = v2.Compose(
            [
                v2.RandomResizedCrop(16),
                v2.RandomHorizontalFlip(),
                v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
                v2.RandomRotation(30),
                v2.GaussianBlur(3),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize([0.5] * 3, [0.2] * 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return self.change(self.images[place]), place % 10


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2), nn.Flatten())
        self.last = nn.Sequential(nn.Linear(392, 64), nn.LayerNorm(64), nn.SiLU(), nn.Dropout(0.3), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(checkpoint(self.first, x, use_reentrant=False))


def train(method: str) -> str:
    """The SHA-256 of the weights; `method` starts the workers."""
    torch.manual_seed(0)
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    context = multiprocessing.get_context(method)
    for x, y in DataLoader(Images(), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context=context):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y, label_smoothing=0.1).backward()
        optimizer.step()
    return hashlib.sha256(b"".join(x.detach().numpy().tobytes() for x in network.state_dict().values())).hexdigest()


if __name__ == "__main__":
    methods = [word for word in sys.argv[1:] if word in multiprocessing.get_all_start_methods()]
    print("weights", train(methods[0] if methods else "fork"))
