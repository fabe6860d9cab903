"""Operations of mnist_pytorch.py in portable numerics.

Images are [B, C, H, W] and kernels [O, I, h, w].
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from repro.portable.backends.pytorch import Backend
from repro.portable.definitions import optimizers
from repro.portable.definitions.convolution import PLAIN, convolution
from repro.portable.definitions.linear import linear
from repro.portable.definitions.losses import cross_entropy
from repro.portable.definitions.pointwise import pixels
from repro.portable.library.autograd.pytorch import apply, run
from repro.portable.numbers import tables
from repro.portable.numbers.constants import BETA1, BETA2
from repro.trainers.loop import float32, layout
from repro.trainers.loop.config import Params
from repro.trainers.native.pytorch.optimizers import Optimizer


def inputs(images: Tensor) -> Tensor:
    """uint8 [B, H, W] -> float32 [B, 1, H, W]."""
    batch_last = images.permute(1, 2, 0).contiguous()
    return run(pixels, batch_last).permute(2, 0, 1).unsqueeze(1)


def conv(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """Valid convolution with bias."""
    return apply(convolution, x.permute(1, 2, 3, 0), kernel.permute(0, 2, 3, 1), bias, **PLAIN).permute(3, 0, 1, 2)


def dense(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
    """[B, I], [O, I], [O] -> [B, O]."""
    return apply(linear, x, kernel, bias)


def max_pool(x: Tensor) -> Tensor:
    """Maximum of each 2 x 2 window; the gradient goes to the first of equals.

    Inside, pairs of rows of a channel are the images, and the batch, last in memory, is their channels: PyTorch pools
    fastest where channels are last.
    """
    batch, channels, rows, columns = x.shape
    pairs = x.permute(1, 2, 3, 0).reshape(channels * rows // 2, 2, columns, batch).permute(0, 3, 1, 2)
    pooled = functional.max_pool2d(pairs, 2).permute(0, 2, 3, 1)
    return pooled.reshape(channels, rows // 2, columns // 2, batch).permute(3, 0, 1, 2)


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over the batch, float32."""
    return apply(cross_entropy, logits, labels)


def total_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum over the batch, float64, exact."""
    return apply(cross_entropy, logits, labels, mean=False)


class PortableOptimizer(Optimizer):
    """An optimizer that updates all weights in one step, one after another in one vector."""

    def __init__(self, params: Params, weights: dict[str, nn.Parameter]) -> None:
        super().__init__(params, weights)
        rate, momentum = float32.nearest(params.learning_rate), float32.nearest(params.momentum)
        self.operation, self.constants = optimizers.of_trainer(params.optimizer, rate, momentum)

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        given = map(_flat, (weights, gradients, *slots))
        results = run(self.operation, *given, *self._corrections(), **self.constants)
        for flat, tensors in zip(results, (weights, *slots), strict=True):
            for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
                tensor.copy_(part.view(tensor.shape))

    def _corrections(self) -> list[list[Tensor]]:
        """The corrections of Adam, whose step is counted."""
        count = self.slots.get(layout.ADAM_COUNT)
        if count is None:
            return []
        corrections = Backend.tables(count, tables.adam, BETA1, BETA2)
        at = count.long().clamp(max=corrections[0].shape[0] - 1)
        count += 1
        return [[table.take(at) for table in corrections]]  # indexing would read `at` back


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


optimizer = PortableOptimizer
