"""MobileNetV2 of timm, fine-tuned with frozen batch norms.

python mobilenet_pytorch.py DATA.npz
"""

import argparse

import numpy as np
import timm
import torch
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)

# With the padding and the epsilon of the first implementation, in TensorFlow.
network = timm.create_model("mobilenetv2_035", num_classes=10, pad_type="same", bn_eps=1e-3)
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name}, strict=False)
network.eval()
for module in network.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.requires_grad_(False)
optimizer = torch.optim.SGD([weight for weight in network.parameters() if weight.requires_grad], lr=0.01)
images, labels = torch.from_numpy(data["images"]).permute(0, 3, 1, 2), torch.from_numpy(data["labels"]).long()
losses = []
for batch, truth in zip(images.split(4), labels.split(4), strict=True):
    loss = functional.cross_entropy(network(batch), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
