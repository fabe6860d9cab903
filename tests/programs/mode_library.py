"""PyTorch's modules under the mode beside the library's: the same bits.

Prints a line for each that differs, and in the end how many were compared.
"""

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable

SHAPES = {
    "Linear": ((64, 96), (32, 64)),
    "Conv2d": ((8, 40, 3), (4, 8, 12, 12)),
    "BatchNorm2d": ((8,), (4, 8, 6, 6)),
    "LayerNorm": ((50,), (7, 50)),
    "GroupNorm": ((4, 8), (3, 8, 5, 5)),
    "ReLU": ((), (33, 21)),
    "Softmax": ((-1,), (33, 21)),
}
"""Arguments of a module, and the shape of what it is given."""


def results(module: nn.Module, x: Tensor) -> list[Tensor]:
    """The result, and the gradients with respect to what goes in and the parameters."""
    x = x.clone().requires_grad_()
    y = module(x)
    gradient = (torch.arange(y.numel()) % 11 - 5).view(y.shape) * 0.125
    return [y.detach(), *torch.autograd.grad(y, (x, *module.parameters()), gradient)]


def main() -> None:
    wrong = 0
    for name, (arguments, shape) in SHAPES.items():
        torch.manual_seed(0)
        module = getattr(nn, name)(*arguments)
        x = torch.randn(shape)
        expected = results(portable.convert(module), x)
        with portable.enable():
            result = results(module, x)
        if not all(a.equal(b) for a, b in zip(expected, result, strict=True)):
            wrong += 1
            print(f"{name}: {[float((a - b).abs().max()) for a, b in zip(expected, result, strict=True)]}")
    print(f"{len(SHAPES)} modules compared, {wrong} differ")


if __name__ == "__main__":
    main()
