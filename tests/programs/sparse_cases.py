"""Cases of mode_indexing.py: sparse tensors, and sparse gradients of embeddings."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.indexing_cases import case, integers, numbers

SHAPE = (7, 11)
OPERANDS = 2.0**-12
"""What dense products may be off: their operands have 13 bits."""


def places() -> Tensor:
    """Of a matrix of SHAPE, some of them several times, in no order."""
    return torch.stack([integers(7, 90, seed=2), integers(11, 90, seed=3)])


def values() -> Tensor:
    return numbers(90, seed=1)


def dense() -> Tensor:
    return numbers(11, 5, seed=4)


def matrix() -> Tensor:
    return numbers(*SHAPE, seed=5)


def coordinates(index: Tensor, x: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(index, x, SHAPE)


def by_rows(x: Tensor) -> Tensor:
    """A matrix without its negative numbers, by rows."""
    return x.relu().to_sparse_csr()


def of_bfloat16() -> Tensor:
    return dense().bfloat16()


case("sparse mm", lambda i, x, b: torch.sparse.mm(coordinates(i, x), b), places, values, dense, close=OPERANDS)
case(
    "sparse mm of float64",
    lambda i, x, b: coordinates(i, x) @ b,
    places,
    lambda: values().double() / 3,
    lambda: dense().double() / 3,
)
case(
    "sparse mm of bfloat16",
    lambda i, x, b: coordinates(i, x) @ b,
    places,
    lambda: values().bfloat16(),
    of_bfloat16,
    forward_only=True,
)
case(
    "sparse addmm",
    lambda y, i, x, b: torch.sparse.addmm(y, coordinates(i, x), b, beta=0.5),
    lambda: numbers(7, 5),
    places,
    values,
    dense,
    close=OPERANDS,
)
case("sparse mm by rows", lambda x, b: by_rows(x) @ b, matrix, dense, forward_only=True)
case("sparse mm by columns", lambda x, b: x.relu().to_sparse_csc() @ b, matrix, dense, forward_only=True)
case("sparse mm of the second", lambda x, b: b.t() @ by_rows(x).t(), matrix, dense, forward_only=True)
case(
    "sparse mv",
    lambda i, x, b: torch.mv(coordinates(i, x), b[:, 0].contiguous()),
    places,
    values,
    dense,
    forward_only=True,
)
case("sparse coalesce", lambda i, x: coordinates(i, x).coalesce().values(), places, values)
case(
    "sparse coalesce of rows",
    lambda i, x: torch.sparse_coo_tensor(i[:1], x, (7, 3)).coalesce().values(),
    places,
    lambda: numbers(90, 3),
)
case("sparse to dense", lambda i, x: coordinates(i, x).to_dense(), places, values)
case("dense to sparse", lambda x: x.relu().to_sparse().to_dense(), matrix)


def beside(result: Tensor, dense: Tensor) -> Tensor:
    """A result, which is near a dense one. PyTorch's own sums and products of sparse tensors are not in reach here."""
    assert torch.allclose(result.double(), dense.double(), rtol=0, atol=4e-6 * dense.abs().max().item())
    return result


def sums(i: Tensor, x: Tensor, y: Tensor) -> Tensor:
    table = y.relu()
    return beside((coordinates(i, x) + table.to_sparse()).to_dense(), table + summed(i, x))


def summed(i: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(SHAPE).index_put(tuple(i), x, accumulate=True)


def differences(i: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return beside(y.sub(coordinates(i, x), alpha=0.3), y - 0.3 * summed(i, x))


def times(i: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return beside((coordinates(i, x) * 0.7 * y / 3.0).to_dense(), summed(i, x) * 0.7 * y / 3.0)


def mask(i: Tensor, x: Tensor) -> Tensor:
    met = summed(i, torch.ones_like(x[0, :1]).expand(90)) > 0
    return beside(x.sparse_mask(coordinates(i, x[0, :1].expand(90)).coalesce()).to_dense(), x * met)


case("sparse sums", sums, places, values, matrix)
case("sparse differences", differences, places, values, matrix, forward_only=True)
case("sparse products of elements", times, places, values, matrix, forward_only=True)
case("sparse mask", mask, places, matrix, forward_only=True)
case(
    "sparse sampled",
    lambda x, b: torch.sparse.sampled_addmm(by_rows(x), x, b).to_dense(),
    matrix,
    lambda: numbers(11, 11, seed=4),
    forward_only=True,
    close=OPERANDS,
)
case("sparse sum along rows", lambda i, x: torch.sparse.sum(coordinates(i, x), 1).to_dense(), places, values)


def stepped(optimizer: type[torch.optim.Optimizer], **options: float) -> Tensor:
    """A table after three steps with sparse gradients, in which rows meet."""
    table = torch.nn.Parameter(numbers(*SHAPE, seed=6))
    made = optimizer([table], **options)
    for step in range(3):
        made.zero_grad()
        rows = F.embedding(integers(7, 20, seed=step), table, sparse=True)
        (rows * rows * numbers(20, 11, seed=step + 7)).sum().backward()
        made.step()
    return table.detach()


case("SparseAdam", lambda: stepped(torch.optim.SparseAdam, lr=0.1), forward_only=True, compared=False)
case(
    "SGD of sparse gradients", lambda: stepped(torch.optim.SGD, lr=0.1, momentum=0.9), forward_only=True, compared=False
)
case("Adagrad of sparse gradients", lambda: stepped(torch.optim.Adagrad, lr=0.1), forward_only=True, compared=False)
