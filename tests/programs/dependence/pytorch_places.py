"""Operations of PyTorch on windows, numbers by index, order, resampling, transforms and matrices."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from programs.dependence.pytorch_layers import case, flat, number
from programs.dependence.scopes import ITS_COLUMN, ITS_ROW, ITS_SAMPLE, NEAR, ROWS_SO_FAR


def sample_of(x: Tensor) -> Tensor:
    """The sample of each row."""
    return torch.arange(len(x)).repeat_interleave(x.shape[1])


def places(x: Tensor) -> Tensor:
    """The sample of each number."""
    return sample_of(x)[:, None].expand(-1, x.shape[2])


def apart(x: Tensor) -> Tensor:
    """Results by sample as [samples, 1, numbers]."""
    return x[:, None]


# --- convolutions, pools: along rows ----------------------------------------------------------------------------------


def time_last(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: function(x.mT).mT


def image(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: function(x[:, None])[:, 0]


case("conv1d", NEAR, time_last(lambda x: F.conv1d(x, number(9, 6, 6, 3), padding=1)))
case("conv1d, causal", ROWS_SO_FAR, time_last(lambda x: F.conv1d(F.pad(x, (2, 0)), number(9, 6, 6, 3))))
case("conv1d, depthwise", NEAR, time_last(lambda x: F.conv1d(x, number(9, 6, 1, 3), padding=1, groups=6)))
case("conv2d", NEAR, image(lambda x: F.conv2d(x, number(10, 1, 1, 3, 3), padding=1)))
case("conv2d of float64", NEAR, image(lambda x: F.conv2d(x.double(), number(10, 1, 1, 3, 3).double(), padding=1)))
case("conv3d", NEAR, image(lambda x: F.conv3d(x[:, :, None], number(10, 1, 1, 1, 3, 3), padding=(0, 1, 1))[:, :, 0]))
case("conv_transpose2d", NEAR, image(lambda x: F.conv_transpose2d(x, number(10, 1, 1, 3, 3), padding=1)))
case("adaptive_avg_pool", ITS_ROW, lambda x: F.adaptive_avg_pool1d(x, 1))
case("avg_pool2d", NEAR, image(lambda x: F.avg_pool2d(x, 3, 1, 1)))
case("max_pool2d", NEAR, image(lambda x: F.max_pool2d(x, 3, 1, 1)))
case("unfold", NEAR, lambda x: F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).flatten(-2))
case(
    "fold",
    ITS_COLUMN,
    lambda x: F.fold(x.mT.repeat_interleave(3, 1), (x.shape[1], 1), (3, 1), padding=(1, 0))[..., 0].mT,
)
case("reflection_pad", ITS_ROW, lambda x: F.pad(x, (0, 2), "reflect")[..., 2:], any_shape=False)

# --- numbers by index -------------------------------------------------------------------------------------------------


def target(x: Tensor) -> Tensor:
    return torch.zeros(len(x), x.shape[2], dtype=x.dtype)


def bag(mode: str) -> Callable[[Tensor], Tensor]:
    def of(x: Tensor) -> Tensor:
        index = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[:2])
        return apart(F.embedding_bag(index, flat(x), mode=mode))

    return of


def embedding_gradient(x: Tensor) -> Tensor:
    weight = torch.ones(len(x), x.shape[2], requires_grad=True)
    return apart(torch.autograd.grad(F.embedding(sample_of(x), weight), weight, flat(x))[0])


def sparse_product(x: Tensor) -> Tensor:
    rows = sample_of(x)
    matrix = torch.sparse_coo_tensor(torch.stack([rows, torch.arange(len(rows))]), torch.ones(len(rows)))
    return apart(torch.sparse.mm(matrix, flat(x)))


def index_put(x: Tensor) -> Tensor:
    return apart(target(x).index_put((sample_of(x),), flat(x), accumulate=True))


def put(x: Tensor) -> Tensor:
    index = places(x) * x.shape[2] + torch.arange(x.shape[2])
    return apart(target(x).put(index, flat(x), accumulate=True))


def gathered(x: Tensor) -> Tensor:
    """The last numbers of each row, once or twice."""
    index = torch.arange(x.shape[-1]) // 2 + x.shape[-1] // 2
    return x.gather(-1, index.expand(x.shape)) + x.index_select(-1, index)


case("index_add", ITS_COLUMN, lambda x: apart(target(x).index_add(0, sample_of(x), flat(x))))
case("scatter_add", ITS_COLUMN, lambda x: apart(target(x).scatter_add(0, places(x), flat(x))))
case(
    "scatter_add of float64",
    ITS_COLUMN,
    lambda x: apart(target(x.double()).scatter_add(0, places(x), flat(x).double())),
)
case("scatter_reduce, `mean`", ITS_COLUMN, lambda x: apart(target(x).scatter_reduce(0, places(x), flat(x), "mean")))
case(
    "scatter_reduce, `amax`",
    ITS_COLUMN,
    lambda x: apart(target(x).scatter_reduce(0, places(x), flat(x), "amax")),
    gradient=False,
)
case("index_put, accumulating", ITS_COLUMN, index_put)
case("put, accumulating", ITS_COLUMN, put)
case(
    "bincount",
    ITS_COLUMN,
    lambda x: sample_of(x).bincount(flat(x)[:, 0]).view(-1, 1, 1) * torch.ones(x.shape[2]),
    gradient=False,
    any_shape=False,
)
case("embedding_bag, `sum`", ITS_COLUMN, bag("sum"))
case("embedding_bag, `mean`", ITS_COLUMN, bag("mean"))
case("embedding_bag, `max`", ITS_COLUMN, bag("max"))
case("gradients of embeddings", ITS_COLUMN, embedding_gradient, gradient=False)
case("sparse matrix by a dense one", ITS_COLUMN, sparse_product)
case("gather, index_select", ITS_ROW, gathered)

# --- order, resampling, transforms, matrices --------------------------------------------------------------------------

case("sort, topk, median", ITS_ROW, lambda x: x.sort(-1)[0] + x.topk(1)[0] + x.median(-1, True)[0])
case("interpolate", ITS_ROW, lambda x: F.interpolate(x, size=9, mode="linear"))
case("interpolate of images", ITS_SAMPLE, image(lambda x: F.interpolate(x, size=(9, 11), mode="bicubic")))


def sampled(x: Tensor) -> Tensor:
    grid = number(12, 1, 5, 6, 2).tanh().expand(len(x), 5, 6, 2)
    return F.grid_sample(x[:, None], grid, align_corners=False)[:, 0]


case("grid_sample", ITS_SAMPLE, sampled)
case("fft", ITS_ROW, lambda x: torch.view_as_real(torch.fft.rfft(x)).flatten(-2), any_shape=False)
case("fft2", ITS_SAMPLE, lambda x: torch.view_as_real(torch.fft.rfft2(x)).flatten(-2))


def square(x: Tensor) -> Tensor:
    """Matrices of positive eigenvalues, of samples without NaN: which of them fails is the call's own."""
    x = x.nan_to_num().clamp(-4, 4)
    return x @ x.mT + torch.eye(x.shape[1])


case(
    "solve, inv, det",
    ITS_SAMPLE,
    lambda x: torch.linalg.solve(square(x), x) + torch.linalg.inv(square(x)).sum(-1, True),
)
case("qr, cholesky", ITS_SAMPLE, lambda x: torch.linalg.qr(square(x))[1] + torch.linalg.cholesky(square(x)))
case("eigh, svd", ITS_SAMPLE, lambda x: (torch.linalg.eigvalsh(square(x)) + torch.linalg.svdvals(square(x)))[:, None])
