"""Operations of golden/operations.txt that PyTorch alone has: indices, order, random numbers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.golden_cases.cases import Case, array, filler, index, mask

CASES: dict[str, Case] = {}
case = filler(CASES)
aten = torch.ops.aten

PLANE, ROW, TIES = array(12, 20), array(20), array(8, 11, kind="ties")
SIGNAL, IMAGES, VOLUMES = array(2, 4, 10), array(2, 4, 8, 7), array(2, 2, 5, 6, 4)
OF_AXES = {1: SIGNAL, 2: IMAGES, 3: VOLUMES}

# --- by index ---------------------------------------------------------------------------------------------------------

TABLE, INDEX = array(11, 5), index(11, 40)
BAGS = torch.tensor([0, 7, 7, 30])
_TARGET, _INDEX, _SOURCE = array(6, 9), index(6, 4, 9), array(4, 9)
case("embedding-padded", lambda w, i: F.embedding(i, w, padding_idx=3, scale_grad_by_freq=True), TABLE, INDEX)
case("embedding-limited", lambda w, i: F.embedding(i, w.clone(), max_norm=1.0), TABLE, INDEX, gradient=False)
for _mode in ("sum", "mean", "max"):
    case(f"embedding_bag-{_mode}", lambda w, i, mode=_mode: F.embedding_bag(i, w, BAGS, mode=mode), TABLE, INDEX)
case(
    "embedding_bag-weighted",
    lambda w, i, s: F.embedding_bag(i, w, BAGS, mode="sum", per_sample_weights=s),
    TABLE,
    INDEX,
    array(40),
)
case("embedding_bag-forward", lambda w, i: F.embedding_bag(i, w, BAGS), TABLE, INDEX, gradient=False)
case(
    "embedding_bag-dense",
    lambda g, i, s: aten._embedding_bag_dense_backward(g, i, i % 4, i.bincount(minlength=11), i, 11, True, 0, s),
    array(40, 5),
    INDEX,
    array(40),
    gradient=False,
)
case("scatter", lambda x, i, y: x.scatter(0, i, y), _TARGET, _INDEX, _SOURCE)
case("scatter_add", lambda x, i, y: x.scatter_add(0, i, y), _TARGET, _INDEX, _SOURCE)
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    case(f"scatter_reduce-{_reduce}", lambda x, i, y, r=_reduce: x.scatter_reduce(0, i, y, r), _TARGET, _INDEX, _SOURCE)
    case(
        f"scatter_reduce-{_reduce}-new",
        lambda x, i, y, r=_reduce: x.scatter_reduce(0, i, y, r, include_self=False),
        _TARGET,
        _INDEX,
        _SOURCE,
        gradient=False,
    )
for _reduce in ("prod", "mean", "amax", "amin"):
    case(
        f"index_reduce-{_reduce}",
        lambda x, i, y, r=_reduce: x.index_reduce(0, i, y, r),
        _TARGET,
        index(6, 4),
        _SOURCE,
        gradient=_reduce != "prod",
    )
for _reduce in ("add", "multiply"):
    case(
        f"scatter-{_reduce}",
        lambda x, i, y, r=_reduce: (x.scatter(0, i, y, reduce=r), x.scatter(0, i, 1.7, reduce=r)),
        _TARGET,
        _INDEX,
        _SOURCE,
        gradient=False,
    )
case("put", lambda x, i, y: (x.put(i, y), x.put(i, y, accumulate=True)), _TARGET, index(54, 40), array(40))
case(
    "index_put",
    lambda x, i, y: (x.index_put((i,), y), x.index_put((i,), y, accumulate=True)),
    TABLE,
    INDEX,
    array(40, 5),
)
case(
    "index_put-axes", lambda x, i, j, y: x.index_put((i, j), y, accumulate=True), TABLE, INDEX, index(5, 40), array(40)
)
case(
    "index_put-forms",
    lambda x, i, y: [_put(x, i, y, each) for each in (False, True)],
    TABLE,
    INDEX,
    array(40, 5),
    gradient=False,
)
case("gather-rows", lambda x, i: x.gather(0, i), _TARGET, _INDEX)
case("take", lambda x, i: x.take(i), _TARGET, index(54, 40))
case("masked", lambda x, m: (x.masked_fill(m, 2.0), x.masked_select(m)), _TARGET, mask(6, 9))
case("bincount", lambda i, w: torch.bincount(i, w), INDEX, array(40), gradient=False)
case("histc", lambda x: (torch.histc(x, 7), torch.histc(x, 5, -1, 1)), PLANE, gradient=False)
case("repeat_interleave", lambda x: x.repeat_interleave(3, 0), TABLE)


def _put(x: Tensor, i: Tensor, y: Tensor, accumulate: bool) -> Tensor:
    first = aten._unsafe_index_put(x, [i], y, accumulate)
    second = aten._index_put_impl_(x.clone(), [i], y, accumulate, True)
    return torch.stack([first, second, x.clone().index_put_((i,), y, accumulate)])


# --- order, scans -----------------------------------------------------------------------------------------------------

case("sort", lambda x: x.sort(0), TIES)
case("sort-down", lambda x: x.sort(dim=1, descending=True, stable=True), TIES)
case("topk", lambda x: x.topk(4, 1), TIES)
case("kthvalue", lambda x: x.kthvalue(3, 1), TIES)
case("median", lambda x: (*x.median(0), x.median()), TIES)
case("nanmedian", lambda x: (*x.nanmedian(0), x.nanmedian()), TIES)
case("mode", lambda x: x.mode(1), TIES)
case("max-index", lambda x: (*x.max(1), *x.min(0), x.argmax()), TIES)
case(
    "unique",
    lambda x: (*torch.unique(x, return_inverse=True, return_counts=True), *aten._unique(x, True, True)),
    TIES,
    gradient=False,
)
case("unique-integers", lambda i: torch.unique(i, return_counts=True), INDEX, gradient=False)
case("quantile", lambda x: x.quantile(0.3, 1), TIES)
case("cummax", lambda x: x.cummax(1)[0], PLANE)

# --- numbers that are made --------------------------------------------------------------------------------------------


def numbers(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Of a copy."""
    return lambda x: function(x.clone())


case("linspace", lambda x: torch.linspace(-1.3, 2.7, 13, dtype=x.dtype), ROW, gradient=False)
case("logspace", lambda x: torch.logspace(-1.3, 2.7, 13, dtype=x.dtype), ROW, gradient=False)
case("arange", lambda x: torch.arange(-1.3, 2.7, 0.3, dtype=x.dtype), ROW, gradient=False)
for _window in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
    case(
        f"window-{_window}", lambda x, w=_window: getattr(torch, f"{w}_window")(13, dtype=x.dtype), ROW, gradient=False
    )
RANDOM: dict[str, Callable[[Tensor], Any]] = {
    "uniform": lambda x: (x.uniform_(), x.uniform_(-1.3, 2.7)),
    "normal": lambda x: (x.clone().normal_(), x.normal_(1.3, 2.7)),
    "exponential": lambda x: x.exponential_(1.3),
    "bernoulli": lambda x: (x.clone().bernoulli_(0.3), x.bernoulli_(torch.full_like(x, 0.3))),
    "geometric": lambda x: x.geometric_(0.3),
    "cauchy": lambda x: x.cauchy_(1.3, 2.7),
    "log_normal": lambda x: x.log_normal_(0.3, 0.7),
    "integers": lambda x: (
        x.clone().random_(),
        x.clone().random_(7),
        x.random_(-3, 7),
        torch.randperm(13, dtype=x.dtype),
    ),
}
for _name, _function in RANDOM.items():
    case(f"random-{_name}", numbers(_function), PLANE, gradient=False)
case(
    "random-normal-of",
    lambda m, s: (torch.normal(m, 2.7), torch.normal(1.3, s), torch.normal(m, s)),
    PLANE,
    array(12, 20, kind="positive"),
    gradient=False,
)
case("random-gamma", torch._standard_gamma, array(12, 20, kind="positive"), gradient=False)
case("random-dirichlet", torch._sample_dirichlet, array(12, 5, kind="positive"), gradient=False)
case("random-poisson", torch.poisson, array(12, 20, kind="positive"), gradient=False)
case("random-poisson-many", lambda x: torch.poisson(x * 100), array(60, kind="positive"), gradient=False)
case(
    "random-binomial",
    lambda x: (torch.binomial(torch.full_like(x, 9), x), torch.binomial(torch.full_like(x, 900), x)),
    array(60, kind="share"),
    gradient=False,
)
case(
    "random-multinomial",
    lambda x: (torch.multinomial(x, 5), torch.multinomial(x, 50, replacement=True)),
    array(4, 20, kind="share"),
    gradient=False,
)
