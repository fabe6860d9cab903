"""A residual network in PyTorch, in portable numerics: the network, one training step, and a trainer.

    python examples/resnet_pytorch.py --steps 20

The counterparts are resnet_jax.py and resnet_tensorflow.py: the same functions in the same order, and the
same fingerprint.
"""

import common
import numpy as np
import resnet
import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.portable.backends.checks import pytorch as checks
from repro.portable.backends.pytorch import Backend
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.library.pytorch import functional
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.native.pytorch.ranks import join

SLOTS = {"momentum": "momentum_buffer"}
"""PyTorch's names of the slots."""
AXES = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
"""PyTorch's [out, in, height, width] and [out, in] as [height, width, in, out] and [in, out]."""


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        first, *_, last = resnet.CHANNELS
        self.conv = conv(1, first, 3)
        self.norm = norm(first)
        inputs = (first, *resnet.CHANNELS)
        stages = zip(inputs, resnet.CHANNELS, resnet.STRIDES, strict=False)
        self.blocks = nn.ModuleList([Block(*stage) for stage in stages])
        self.dense = portable.Linear(last, resnet.CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Images float32 [B, 1, 28, 28] -> logits [B, 10]."""
        x = functional.relu(self.norm(self.conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.dense(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(inputs, channels, 3, stride)
        self.norm1 = norm(channels)
        self.conv2 = conv(channels, channels, 3)
        self.norm2 = norm(channels)
        self.stride = stride
        if stride > 1:
            self.conv3 = conv(inputs, channels, 1, stride)
            self.norm3 = norm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """[B, inputs, H, W] -> [B, channels, H / stride, W / stride]."""
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        if self.stride > 1:
            x = self.norm3(self.conv3(x))
        return functional.relu(functional.add(x, y))


def conv(inputs: int, channels: int, size: int, stride: int = 1) -> nn.Module:
    return portable.Conv2d(inputs, channels, size, stride, padding=size // 2, bias=False)


def norm(channels: int) -> nn.Module:
    return portable.BatchNorm2d(channels, resnet.EPSILON, 1 - resnet.KEPT)


class Trainer:
    """Trains the network."""

    def __init__(self, params: Params, mode: common.Mode, rank_info: RankInfo | None) -> None:
        torch.set_num_threads(params.threads)
        self.ranks = join(rank_info, params)
        there = torch.cuda.is_available() and params.device != "cpu"
        self.device = torch.device("cuda" if there or params.device == "gpu" else "cpu")
        checks.self_check(self.device, params.engine)
        self.network = ResNet().to(self.device, memory_format=torch.channels_last)
        self.weights = dict(zip(resnet.WEIGHTS, self.network.parameters(), strict=True))
        running = [buffer for buffer in self.network.buffers() if buffer.is_floating_point()]
        self.statistics = dict(zip(resnet.STATISTICS, running, strict=True))
        self.optimizer = portable.optim.SGD(
            self.weights.values(), momentum=resnet.MOMENTUM, weight_decay=resnet.DECAY, nesterov=True
        )
        cpu = self.device.type == "cpu"  # where the loops of repro.portable are faster
        if cpu and mode == "compiled":
            common.find_compiler()
        if mode == "compiled" or (mode == "auto" and not cpu):
            for block in self.network.blocks:
                block.compile(dynamic=False)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, float32 [B, 28, 28, 1] and int32 [B], and returns its loss."""
        Backend.ranks = self.ranks
        images, labels = self._placed(inputs, targets)
        loss = functional.cross_entropy(self.network.train()(images), labels, resnet.SMOOTHING)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The number of these images that are recognized."""
        Backend.ranks = SINGLE_PROCESS
        images, labels = self._placed(inputs, targets)
        return (self.network.eval()(images).argmax(1) == labels).sum().item()

    def _placed(self, inputs: np.ndarray, targets: np.ndarray) -> tuple[Tensor, Tensor]:
        images, labels = (torch.from_numpy(each).to(self.device) for each in (inputs, targets))
        return images.permute(0, 3, 1, 2), labels

    def state(self) -> common.Arrays:
        """Weights, statistics and slots, float32, by the names and in the layout of resnet.WEIGHTS."""
        return {name: np.array(tensor.detach().cpu().numpy(), order="C") for name, tensor in self._tensors().items()}

    @torch.no_grad()
    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        for weight in self.weights.values():
            self.optimizer.state[weight] = {own: torch.zeros_like(weight) for own in SLOTS.values()} | {"step": step}
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(state[name]))

    def _tensors(self) -> dict[str, Tensor]:
        kept, weights = self.optimizer.state, self.weights
        slots = {f"{slot}/{name}": kept[weights[name]][own] for slot, own in SLOTS.items() for name in weights}
        return {name: each.permute(AXES[each.dim()]) for name, each in (weights | self.statistics | slots).items()}


if __name__ == "__main__":
    common.main("pytorch", resnet, Trainer)
