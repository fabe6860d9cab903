"""Steps of the PyTorch trainer on a device: what of them leaves it, or what replays of a CUDA graph change.

pytorch_steps.py recorded|replayed DEVICE NUMERICS:OPTIMIZER...
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import mnist_pytorch
from repro.fingerprint import fingerprint
from repro.portable.backends.checks import pytorch as checks
from repro.trainers.loop import environment, randomness
from repro.trainers.loop.config import Config, Params
from repro.trainers.loop.data import Dataset

draw = np.random.default_rng(0)
images, labels = draw.integers(0, 256, (512, 28, 28)).astype(np.uint8), draw.integers(0, 10, 512).astype(np.int32)
batches = draw.integers(0, 512, (30, 32)).astype(np.int32)
keep = draw.integers(0, 2, (30, 32, 70)).astype(np.uint8)


def trainer(numerics: str, optimizer: str) -> Any:
    dataset = Dataset("mnist", images, labels, images, labels, Path(), {})
    return mnist_pytorch.Trainer(Params(numerics=numerics, optimizer=optimizer), dataset)


class Devices(TorchDispatchMode):
    """Prints each operation that has a tensor on another device than this one."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, operation: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        result = operation(*given, **(named or {}))
        for tensor in torch.utils._pytree.tree_leaves((given, named, result)):
            if isinstance(tensor, torch.Tensor) and tensor.device.type != self.device:
                print("on another device:", operation)
        return result


def recorded(device: str, numerics: str, optimizer: str) -> None:
    """PyTorch's device without numbers can give none back, and no operation mixes its tensors with the host's."""
    inputs = [torch.from_numpy(array).to(device) for array in (images[:32], labels[:32].astype(np.int64), keep[0])]
    part = trainer(numerics, optimizer)
    part._step(part.ranks, *inputs)
    with Devices(device):
        print(part._step(part.ranks, *inputs).device)


def replayed(device: str, numerics: str, optimizer: str) -> None:
    """Steps of two sizes of batch, replayed and eager."""
    results = []
    for replays in (True, False):
        part = trainer(numerics, optimizer)
        if not replays:
            part.graphed = None
        part.load_state(randomness.initial_state(0, "lenet", optimizer))
        losses = [part.steps(batches[:, :size], keep[:, :size]) for size in (32, 20, 32)]
        results.append(fingerprint(part.state() | {"losses": np.concatenate(losses)}))
        print(len(part.graphed.graphs) if replays else results[0] == results[1])


if __name__ == "__main__":
    how, device, *pairs = sys.argv[1:]
    mnist_pytorch.choose_device = lambda wanted: torch.device(device)
    if how == "recorded":
        checks.self_check = lambda *_: None
        torch.library.register_fake("aten::_fused_sgd_")(lambda *given, **named: None)
    for numerics, optimizer in (pair.split(":") for pair in pairs):
        environment.apply("pytorch", Config(params=Params(numerics=numerics)))
        {"recorded": recorded, "replayed": replayed}[how](device, numerics, optimizer)
