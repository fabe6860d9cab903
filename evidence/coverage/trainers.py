"""Scripts of trainers that others wrote: each runs as it stands, and leaves its weights behind.

A script trains for two epochs with a loader's worker, evaluates, saves, and is resumed after the first epoch, too.
"""

import os
import runpy
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from evidence.coverage.registry import program

SCRIPTS = Path(__file__).parent / "scripts"


def script(name: str, *arguments: str) -> None:
    """Runs a script in this process, as `python NAME ARGUMENTS`; what it prints goes to stderr."""
    before = sys.argv
    sys.argv = [str(SCRIPTS / name), *arguments]
    try:
        with redirect_stdout(sys.stderr):
            runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        sys.argv = before


def _trainer(title: str, name: str) -> None:
    @program("trainers", title)
    def train() -> dict[str, Tensor]:
        with tempfile.TemporaryDirectory() as folder:
            script(name, f"{folder}/whole", "2")
            script(name, f"{folder}/parts", "1")
            script(name, f"{folder}/parts", "2")
            whole, parts = (load_file(f"{folder}/{each}/weights.safetensors") for each in ("whole", "parts"))
        for key, tensor in whole.items():
            assert torch.equal(tensor, parts[key]), f"{key} differs after resuming"
        return whole


os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
_trainer("Trainer of Hugging Face", "hugging_face.py")
_trainer("Lightning", "lightning_fit.py")
_trainer("accelerate", "accelerate_loop.py")
_trainer("Keras on PyTorch", "keras_fit.py")
