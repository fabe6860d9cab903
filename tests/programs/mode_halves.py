"""A small network in bfloat16 and float16 under the mode.

    python mode_halves.py

Prints JSON: by kind of training the SHA-256 of its end for one thread and two, and the largest relative difference of a
gradient of the first step from PyTorch's own.
"""

import hashlib
import json
from contextlib import nullcontext
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional

import repro.portable.pytorch as portable

STEPS, BATCH = 3, 16


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.dense, self.rows = nn.Linear(8, 32), nn.LayerNorm(32)
        self.heads, self.classes = nn.Linear(32, 96), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.norm(self.convolution(x))), 2).flatten(2).transpose(1, 2)
        x = self.rows(functional.gelu(self.dense(x)))
        query, key, value = (part[:, None] for part in self.heads(x).chunk(3, -1))
        return self.classes((x + functional.scaled_dot_product_attention(query, key, value)[:, 0]).mean(1))


torch.manual_seed(0)
START, IMAGES = Network(), torch.randn(STEPS, BATCH, 1, 8, 8)
LABELS = torch.arange(STEPS * BATCH).view(STEPS, BATCH) % 10


def trained(dtype: torch.dtype, automatic: bool) -> tuple[str, list[Tensor]]:
    """The fingerprint of all weights and buffers, and the gradients of the first step."""
    network, x = deepcopy(START), IMAGES
    if not automatic:
        network, x = network.to(dtype), x.to(dtype)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=automatic and dtype == torch.float16)
    first: list[Tensor] = []
    for images, labels in zip(x, LABELS, strict=True):
        with torch.autocast("cpu", dtype) if automatic else nullcontext():
            loss = functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        first = first or [each.grad.double() for each in network.parameters() if each.grad is not None]
        scaler.step(optimizer)
        scaler.update()
    digest = hashlib.sha256()
    for each in network.state_dict().values():
        digest.update(each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest(), first


def main() -> dict[str, list]:
    kinds = [(dtype, automatic) for dtype in (torch.bfloat16, torch.float16) for automatic in (True, False)]
    own = [trained(*kind)[1] for kind in kinds]
    answer: dict[str, list] = {}
    with portable.enable():
        for kind, right in zip(kinds, own, strict=True):
            ends = []
            for threads in (1, 2):
                torch.set_num_threads(threads)
                end, first = trained(*kind)
                ends.append(end)
            away = max(float((a - b).norm() / b.norm()) for a, b in zip(first, right, strict=True))
            answer[f"{kind[0]}{', autocast' * kind[1]}"] = [*ends, away]
    return answer


print(json.dumps(main()))
