"""Options, checkpoints and steps of the cases in PyTorch.

A case is called as `python CASE.py FOLDER [--resume] [--NAME=VALUE]`.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import torch

PAUSE = 0.02
"""Seconds after a checkpoint, in which `verify` may stop the case."""

_parser = argparse.ArgumentParser()
_parser.add_argument("folder", type=Path)
_parser.add_argument("--resume", action="store_true")
_options, _words = _parser.parse_known_args()
FOLDER: Path = _options.folder


def option(name: str, default: int) -> int:
    """The value of --NAME=VALUE."""
    begin = f"--{name}="
    return next((int(word.removeprefix(begin)) for word in _words if word.startswith(begin)), default)


def save(name: str = "checkpoint", **state: Any) -> None:
    """Replaces the checkpoint in one go, so that a case may be killed at any time."""
    path = FOLDER / f"{name}.pt"
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(PAUSE)


def restored(name: str = "checkpoint") -> dict[str, Any]:
    """The checkpoint that --resume goes on from; empty where the case begins."""
    path = FOLDER / f"{name}.pt"
    return torch.load(path) if _options.resume and path.exists() else {}


def update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> float:
    """One step of training; the loss before it."""
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def finish(model: torch.nn.Module) -> None:
    torch.save(model.state_dict(), FOLDER / "model.pt")
