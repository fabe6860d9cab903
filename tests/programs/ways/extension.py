"""An extension in C++, whose calls of PyTorch's operations are portable: prints whether they are those of Python."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
torch::Tensor work(torch::Tensor x) { return torch::exp(x).matmul(x); }
"""
x = torch.arange(10000).remainder(997).float() / 100 - 5
extension = load_inline("repro_extension", cpp_sources=SOURCE, functions=["work"])
print("same", torch.equal(extension.work(x), torch.exp(x).matmul(x)))
