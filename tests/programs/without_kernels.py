"""Cases of test_compiler.py: definitions where nothing can be compiled; prints JSON.

python without_kernels.py trained KERNELS: the SHA-256 of what some steps of a network train, with or without kernels
python without_kernels.py amid: the cases of definitions
"""

import gc
import hashlib
import json
import signal
import sys
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.portable import kernels
from repro.portable.backends.pytorch import Backend
from repro.portable.compiler.pytorch import natively, plan
from repro.portable.definitions import activations, functions
from repro.portable.definitions.functions import exponential
from repro.portable.kernels import pytorch as compiler
from repro.portable.modes.pytorch.dispatcher import dispatch

# --- training ---------------------------------------------------------------------------------------------------------


def network() -> nn.Module:
    """Convolutions of each kind, and products of more than backends.pytorch.LEAST_WORK multiplications."""
    images = nn.Conv2d(3, 32, 3, padding=1), nn.GELU("tanh"), nn.Conv2d(32, 40, 3, 2, 1, 2), nn.SiLU()
    more = nn.ConvTranspose2d(40, 32, 3, 2, 1, 1), nn.Tanh(), nn.Conv2d(32, 32, 1), nn.AvgPool2d(4), nn.Flatten()
    return nn.Sequential(*images, *more, nn.Linear(32 * 49, 96), nn.Sigmoid(), nn.Linear(96, 10))


def trained() -> list[str]:
    """The digest, and the matmul backend."""
    with portable.enable():
        engine = Backend.engine
        torch.manual_seed(0)
        model, x, y = network(), torch.randn(16, 3, 32, 32), torch.arange(16) % 10
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return [digest.hexdigest(), engine]


# --- definitions ------------------------------------------------------------------------------------------------------


def blocks() -> list[bool]:
    """Elements in blocks, of which the last one is not full, have the bits and strides that they have at once."""
    images = torch.randn(3, 7, 40, 41)
    assert images.numel() > natively.BLOCK and images.numel() % natively.BLOCK
    number = torch.tensor(0.5)
    last, part = images.contiguous(memory_format=torch.channels_last), images[:, :, 1:]
    given: list[tuple[Any, tuple[Tensor, ...]]]
    given = [(exponential.tanh, (each,)) for each in (images, last, images.mT, part, images.double())]
    given += [(activations.gelu_backward, (images, each)) for each in (images.abs(), last, number)]
    given += [(activations.glu_backward, (each, each, images)) for each in (images, last)]
    result = []
    for function, arrays in given:
        made = [_listed(plan.run(functions.rounded(function), *arrays)) for _ in range(2)]
        with mock.patch.object(natively, "BLOCK", images.numel()):
            made[0] = _listed(plan.run(functions.rounded(function), *arrays))
        for whole, other in zip(*made, strict=True):
            result.append(whole.stride() == other.stride() and whole.numpy().tobytes() == other.numpy().tobytes())
    return result


def _listed(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple) else [results]


def calls() -> list[int]:
    """The sizes of blocks."""
    sizes: list[int] = []

    def seen(xp: Any, x: Tensor, bits: int = 53) -> Tensor:
        sizes.append(x.numel())
        return x

    plan.run(functions.rounded(seen), torch.zeros(2, natively.BLOCK + 3))
    return sizes


class Finalized:
    """Computes when the garbage collector meets it."""

    def __init__(self, results: list[bool]) -> None:
        self.circle, self.results = self, results

    def __del__(self) -> None:
        self.results.append(portably())


def portably() -> bool:
    """True if a product is the mode's, and tensors are made where a program wants them."""
    before = dispatch.counts["mm"]
    return torch.ones(2, 3).mm(torch.ones(3, 2)).sum() == 12 and dispatch.counts["mm"] > before


def interrupted() -> list[bool]:
    """A handler of signals and a finalizer amid a definition compute portably, and what follows goes past the mode again."""
    results: list[bool] = []

    def definition(xp: Any, x: Tensor) -> Tensor:
        results.append(not portably())
        signal.raise_signal(signal.SIGUSR1)
        Finalized(results)
        gc.collect()
        results.append(not portably())
        return xp.f64(x) * 2.0

    with portable.enable():
        signal.signal(signal.SIGUSR1, lambda *_: results.append(portably()))
        results.append(plan.run(definition, torch.ones(3)).sum().item() == 6.0)
        results.append(portably())
    return results


def factories() -> list[list[float]]:
    """What is made of nothing amid a definition, and after it."""

    def definition(xp: Any, x: Tensor) -> Any:
        return torch.zeros(2), torch.arange(2), xp.causal(x, 1, 2), torch.tensor([3.0]), torch.ones(1, device="cpu")

    with portable.enable():
        made = plan.run(definition, torch.ones(3))
        after = torch.empty(1, device="meta")
    return [*(each.tolist() for each in made), [after.device.type == "meta"]]


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "trained":
        compiler.available = kernels.available = sys.argv[2] == "kernels"
        print(json.dumps(trained()))
    else:
        compiler.available = kernels.available = False
        print(json.dumps({each.__name__: each() for each in (blocks, calls, interrupted, factories)}))
