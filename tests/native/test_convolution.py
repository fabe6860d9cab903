"""The convolution of PyTorch's trainer where there is AVX2 alone: its result, and its gradients against differences."""

from support.runs import python

CONVOLVED = """
import torch
from torch.nn import functional
from repro.native.pytorch.layers import ConvWithOwnBias
conv = ConvWithOwnBias.apply
draw = torch.Generator().manual_seed(0)
x, kernel, bias = (
    torch.randn(shape, dtype=torch.float64, generator=draw, requires_grad=True)
    for shape in ((2, 3, 7, 6), (4, 3, 3, 2), (4,))
)
print(torch.equal(conv(x, kernel, bias), functional.conv2d(x, kernel, bias)))
print(torch.autograd.gradcheck(conv, (x, kernel, bias)))
print(torch.autograd.gradcheck(lambda *weights: conv(x.detach(), *weights), (kernel, bias)))
"""


def test_it_is_pytorchs_own_with_all_its_gradients() -> None:
    assert python("pytorch", CONVOLVED) == "True\nTrue\nTrue\n"
