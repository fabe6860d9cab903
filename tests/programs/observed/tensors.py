"""Tensors of every kind, and the hash of each, or why it has none; and the hashes of all that are made at once."""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.two_tensor import TwoTensor

from repro.observe import hashing

warnings.simplefilter("ignore")


class Wrapper(torch.Tensor):
    """Holds its values in another tensor, and says to nobody in which."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Wrapper":
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("the observer called an operation of the program's tensor")


class Subclass(torch.Tensor):
    """Has memory of its own, and changes what functions return."""

    @classmethod
    def __torch_function__(cls, function: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("the observer called a function of the program's tensor")


def quantized(scale: float, zero: int) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), scale, zero, torch.qint8)


def by_channel(last: float, axis: int) -> torch.Tensor:
    scales = torch.tensor([0.1, 0.2, last])
    return torch.quantize_per_channel(torch.ones(3, 3), scales, torch.zeros(3, dtype=torch.long), axis, torch.qint8)


def coordinates(*shape: int) -> torch.Tensor:
    return torch.sparse_coo_tensor([[0], [0]], [1.0], shape)


def rows(*shape: int) -> torch.Tensor:
    return torch.sparse_csr_tensor([0, 1, 1, 1], [0], [1.0], shape)


def nested(layout: torch.layout, *lengths: int) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(length) for length in lengths], layout=layout)


def freed() -> torch.Tensor:
    memory = torch.ones(5)
    view = memory[2:]
    memory.untyped_storage().resize_(0)
    return view


ones, eye = torch.ones(3), torch.eye(4)
complex_ones = torch.complex(ones, ones)
TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "dense": lambda: ones,
    "parameter": lambda: torch.nn.Parameter(ones),
    "subclass": lambda: torch.Tensor._make_subclass(Subclass, ones),
    "expanded": lambda: torch.ones(()).expand(3),
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).T,
    "in rows": lambda: torch.arange(6.0).reshape(2, 3).T.contiguous(),
    "negative bit": lambda: complex_ones.conj().imag,
    "negative": lambda: -ones,
    "conjugate bit": lambda: complex_ones.conj(),
    "conjugate": lambda: torch.complex(ones, -ones),
    "zero tensor": lambda: torch._efficientzerotensor((3,)),
    "zeros": lambda: torch.zeros(3),
    "wrapper": lambda: Wrapper(ones),
    "freed": freed,
    "two": lambda: TwoTensor(ones, torch.zeros(3)),
    "two others": lambda: TwoTensor(ones, ones),
    "quantized": lambda: quantized(0.1, 0),
    "quantized, other scale": lambda: quantized(0.2, 0),
    "quantized, other zero": lambda: quantized(0.1, 1),
    "by channel": lambda: by_channel(0.3, 0),
    "by channel, other axis": lambda: by_channel(0.3, 1),
    "by channel, other scale": lambda: by_channel(0.4, 0),
    "coo": lambda: coordinates(3, 3),
    "coo, other shape": lambda: coordinates(4, 3),
    "csr": lambda: rows(3, 3),
    "csr, other shape": lambda: rows(3, 4),
    "csc": lambda: eye.to_sparse_csc(),
    "bsr": lambda: eye.to_sparse_bsr((2, 2)),
    "bsc": lambda: eye.to_sparse_bsc((2, 2)),
    "nested": lambda: nested(torch.strided, 2, 3),
    "nested, other lengths": lambda: nested(torch.strided, 3, 2),
    "jagged": lambda: nested(torch.jagged, 2, 3),
    "jagged, other lengths": lambda: nested(torch.jagged, 3, 2),
    "mkldnn": lambda: torch.ones(3, 3).to_mkldnn(),
    "mkldnn, other values": lambda: torch.zeros(3, 3).to_mkldnn(),
    "meta": lambda: torch.ones(3, device="meta"),
    "meta, other shape": lambda: torch.ones(4, device="meta"),
    "bfloat16": lambda: torch.ones(3, dtype=torch.bfloat16),
    "float8": lambda: torch.ones(3, dtype=torch.float8_e4m3fn),
    "empty": lambda: torch.ones(0, 3),
}


def hashed(tensor: torch.Tensor) -> str:
    try:
        return hashing.hash_tensor(tensor)
    except ValueError as error:
        return str(error)


if __name__ == "__main__":
    tensors = {name: make() for name, make in TENSORS.items()}
    alone = {name: hashed(tensor) for name, tensor in tensors.items()}
    json.dump({"alone": alone, "together": hashing.hash_named(tensors.items())}, sys.stdout)
