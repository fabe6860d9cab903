"""Products of groups of rows, each with a matrix of its own, as in mixtures of experts."""

from itertools import pairwise

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import compose


@compose("_grouped_mm")
def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Products of groups: `offs` says where each group of one matrix ends, in rows, columns, or in what is summed."""
    if offs is None:
        product = self.bmm(mat2)
    else:
        groups = list(pairwise((0, *offs.tolist())))
        if self.dim() == 2 and mat2.dim() == 2:
            product = torch.stack([self[:, start:end] @ mat2[start:end] for start, end in groups])
        elif self.dim() == 2:
            parts = [self[start:end] @ matrix for (start, end), matrix in zip(groups, mat2, strict=True)]
            product = _filled(torch.cat(parts), self.shape[0], 0)
        else:
            parts = [matrix @ mat2[:, start:end] for (start, end), matrix in zip(groups, self, strict=True)]
            product = _filled(torch.cat(parts, 1), mat2.shape[1], 1)
    product = product if bias is None else product + bias
    return product if out_dtype is None else product.to(out_dtype)


def _filled(product: Tensor, size: int, dim: int) -> Tensor:
    """Zeros for what belongs to no group."""
    missing = size - product.shape[dim]
    if not missing:
        return product
    shape = [missing if axis == dim else length for axis, length in enumerate(product.shape)]
    return torch.cat((product, product.new_zeros(shape)), dim)
