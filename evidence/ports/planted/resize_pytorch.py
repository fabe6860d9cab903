"""A convolution, an image of twice the size by interpolation, a convolution, in PyTorch.

python resize_pytorch.py DATA.npz [--fault FAULT]
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("corners",))
options = parser.parse_args()
data = np.load(options.data)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 2, 1)
        # With align_corners the corner pixels' centers stay where they are; Keras has all pixels keep their area.
        self.resize = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=options.fault == "corners")

    def forward(self, images: Tensor) -> Tensor:
        return self.conv2(self.resize(functional.relu(self.conv1(images))))


network = Network()
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name})
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
images, targets = (torch.from_numpy(data[name]).permute(0, 3, 1, 2) for name in ("images", "targets"))
losses = []
for batch, target in zip(images.split(4), targets.split(4), strict=True):
    loss = functional.mse_loss(network(batch), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
