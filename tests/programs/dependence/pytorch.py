"""What results of PyTorch's operations depend on, under portable numerics. Prints JSON, as scopes.report has it.

python pytorch.py [NAME ...]
"""

import json
import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

import repro.portable.pytorch as portable
from programs.dependence import pytorch_places  # noqa: F401
from programs.dependence.pytorch_layers import CASES
from programs.dependence.scopes import report


def forward(function: Callable[[Tensor], Tensor], x: np.ndarray) -> np.ndarray:
    return function(torch.from_numpy(x.copy())).detach().numpy()


def backward(function: Callable[[Tensor], Tensor], x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    given = torch.from_numpy(x.copy()).requires_grad_()
    y = function(given)
    return torch.autograd.grad(y, given, torch.from_numpy(gradient.copy()).to(y.dtype))[0].numpy()


if __name__ == "__main__":
    portable.enable()
    names = sys.argv[1:] or list(CASES)
    print(json.dumps(report({name: CASES[name] for name in names}, forward, backward)))
