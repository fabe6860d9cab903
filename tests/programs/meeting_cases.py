"""Cases of mode_indexing.py: numbers that meet, products and scans."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.indexing_cases import case, image, integers, numbers, volume


def matrix() -> Tensor:
    return numbers(7, 9)


def more() -> Tensor:
    return numbers(300, 9, seed=1)


def near_one() -> Tensor:
    return numbers(7, 9) * 2.0**-12 + 1


def places() -> Tensor:
    return integers(7, 300, seed=2)


def everywhere() -> Tensor:
    return integers(7, 300, 9, seed=3)


def doubles(make: Callable[[], Tensor]) -> Callable[[], Tensor]:
    return lambda: make().double() / 3


for _type, _make in (
    ("", lambda make: make),
    (" of float64", doubles),
    (" of bfloat16", lambda make: lambda: make().bfloat16()),
):
    _x, _more = _make(matrix), _make(more)
    case(f"scatter_add{_type}", lambda x, i, s: x.scatter_add(0, i, s), _x, everywhere, _more)
    case(f"index_add{_type}", lambda x, i, s: x.index_add(0, i, s), _x, places, _more)
    case(f"index_put{_type}", lambda x, i, s: x.index_put((i,), s, accumulate=True), _x, places, _more)
    case(f"index{_type}", lambda x, i: x[i] * x[:, i % 3].sum(), _x, places)
    case(f"prod{_type}", lambda x: (x.prod(1), x.prod(0, keepdim=True)), _make(near_one))
    case(f"cumprod{_type}", lambda x: x.cumprod(1), _make(near_one))
    case(f"cumsum{_type}", lambda x: (x.cumsum(0), x.cumsum(-1)), _x)
for _reduce in ("sum", "mean", "prod", "amax", "amin"):
    for _included in (True, False):
        _values = near_one if _reduce == "prod" else matrix
        case(
            f"scatter_reduce {_reduce} {_included}",
            lambda x, i, s, how=_reduce, self=_included: x.scatter_reduce(0, i, s, how, include_self=self),
            _values,
            lambda: integers(5, 40, 9, seed=3),
            lambda: numbers(40, 9, seed=1) * 2.0**-12 + 1,
        )
for _reduce in ("mean", "prod", "amax"):
    case(
        f"index_reduce {_reduce}",
        lambda x, i, s, how=_reduce: x.index_reduce(1, i, s, how, include_self=False),
        near_one,
        lambda: integers(7, 40),
        lambda: numbers(7, 40) * 2.0**-12 + 1,
    )
for _reduce in ("add", "multiply"):
    case(
        f"scatter {_reduce}",
        lambda x, i, s, how=_reduce: (x.scatter(0, i, s, reduce=how), x.scatter(0, i, 1.5, reduce=how)),
        near_one,
        lambda: integers(7, 4, 9),
        lambda: numbers(4, 9),
        forward_only=True,
    )
case("put", lambda x, i, s: x.put(i - 20, s, accumulate=True), matrix, lambda: integers(60, 100), lambda: numbers(100))
case("repeat, expand", lambda x: (x.repeat(3, 2), x.expand(4, 7, 9), x.repeat_interleave(3, 0)), matrix)
case("unfold", lambda x: x.unfold(0, 3, 1), matrix)
case("as_strided", lambda x: torch.as_strided(x.contiguous(), (5, 4), (2, 1)), matrix)
case("fold", lambda x: F.fold(F.unfold(x, 3, padding=1), (13, 17), 3, padding=1, stride=1), image)
case("diff", lambda x: torch.diff(x, 2, 0), matrix)
case("trapezoid", lambda x: (torch.trapezoid(x), torch.cumulative_trapezoid(x, dx=0.3)), matrix)
case("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), image)
case("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(13, 17)), image)
case("adaptive_max_pool", lambda x: F.adaptive_max_pool2d(x, (5, 4)), image)
case("lp_pool2d", lambda x: F.lp_pool2d(x.abs() + 1, 2, 3), image)
case("padding", lambda x: F.pad(x, (2, 3, 1, 2), "reflect") + F.pad(x, (2, 3, 1, 2), "circular"), image)
case("padding, replicated", lambda x: F.pad(x, (2, 3, 1, 2, 4, 1), "replicate"), volume)
case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), image)
case(
    "bincount", lambda i, w: (torch.bincount(i, w), torch.bincount(i)), places, lambda: numbers(300), forward_only=True
)
case("histc", lambda x: (x.histc(20), x.histc(7, -1, 1)), matrix, forward_only=True)

# --- the last one stays -----------------------------------------------------------------------------------------------


def last(write: Callable[..., Any]) -> Callable[..., Any]:
    """A function that writes by index, beside what writes one after the other."""

    def function(x: Tensor, index: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        expected = x.clone()
        for row, new in zip(index.tolist(), source, strict=True):
            expected[row] = new
        result = write(x, index, source)
        assert torch.equal(result, expected)
        return result

    return function


for _named, _write in {
    "index_copy": lambda x, i, s: x.index_copy(0, i, s),
    "index_put": lambda x, i, s: x.index_put((i,), s),
    "setitem": lambda x, i, s: x.clone().index_put_((i - 7, torch.arange(9)[:, None]), s.t()),
    "scatter": lambda x, i, s: x.scatter(0, i[:, None].expand(300, 9), s),
    "put": lambda x, i, s: x.put(i[:, None] * 9 + torch.arange(9), s),
}.items():
    case(f"the last {_named}", last(_write), matrix, places, more, compared=False, forward_only=True)

# --- bags and distances -----------------------------------------------------------------------------------------------


def bag(mode: str, weighted: bool = False, **options: Any) -> Callable[..., Tensor]:
    def function(table: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        offsets = torch.tensor([0, 4, 4, 100, 250])
        given = weights.to(table.dtype) if weighted else None
        return F.embedding_bag(index, table, offsets, mode=mode, per_sample_weights=given, **options)

    return function


for _mode in ("sum", "mean", "max"):
    case(f"embedding_bag {_mode}", bag(_mode), matrix, places, lambda: numbers(300))
    case(f"embedding_bag {_mode}, padding", bag(_mode, padding_idx=3), matrix, places, lambda: numbers(300))
case("embedding_bag, weighted", bag("sum", True), matrix, places, lambda: numbers(300))
case("embedding_bag, frequency", bag("sum", scale_grad_by_freq=True), matrix, places, lambda: numbers(300))
case("embedding", lambda w, i: F.embedding(i, w, padding_idx=2, scale_grad_by_freq=True), matrix, places)
case("embedding, max_norm", lambda w, i: F.embedding(i, w.clone(), max_norm=2.0), matrix, places, forward_only=True)
case("renorm", lambda x: x.renorm(2, 0, 1.5), matrix)
for _p in (2.0, 1.0, torch.inf):
    case(f"cdist {_p}", lambda a, b, p=_p: torch.cdist(a, b, p), matrix, lambda: numbers(20, 9, seed=5))
    case(f"pdist {_p}", lambda a, p=_p: F.pdist(a, p), matrix)
case("cdist of many", torch.cdist, matrix, lambda: numbers(30, 9, seed=5), compared=False)
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 1), matrix, lambda: numbers(7, 9, seed=5))
case("pairwise_distance", lambda a, b: F.pairwise_distance(a, b), matrix, lambda: numbers(7, 9, seed=5))
case("cross", lambda a, b: torch.linalg.cross(a, b), lambda: numbers(7, 3), lambda: numbers(7, 3, seed=5))


def spaced(x: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.linspace(0.03, 0.7, 77, dtype=x.dtype),
        torch.linspace(-3, 5, 4, dtype=x.dtype),
        torch.linspace(2.5, 9, 1, dtype=x.dtype),
        torch.logspace(-1, 2, 33, dtype=x.dtype),
        torch.arange(0.3, 77, 0.37, dtype=x.dtype),
        torch.arange(5, -5, -2, dtype=x.dtype),
        torch.hann_window(33, dtype=x.dtype),
        torch.kaiser_window(33, dtype=x.dtype),
        torch.kaiser_window(20, False, 5.0, dtype=x.dtype),
    )


case("linspace, arange", spaced, matrix, forward_only=True)
case("bilinear layer", F.bilinear, matrix, lambda: numbers(7, 5, seed=5), lambda: numbers(4, 9, 5, seed=6))

# --- losses -----------------------------------------------------------------------------------------------------------


def labels() -> Tensor:
    return integers(9, 7, seed=8)


def label_lists() -> Tensor:
    result = torch.stack([torch.arange(9).roll(row) for row in range(7)])
    result[torch.arange(7), torch.arange(7)] = -1
    return result


def positive() -> Tensor:
    return numbers(9, seed=9).abs()


for _reduction in ("none", "mean", "sum"):
    _options = {"reduction": _reduction}
    case(
        f"nll_loss {_reduction}",
        lambda x, t, w, o=_options: F.nll_loss(x, t, w.detach(), ignore_index=3, **o),
        matrix,
        labels,
        positive,
    )
    case(
        f"multi_margin_loss {_reduction}",
        lambda x, t, w, o=_options: F.multi_margin_loss(x, t, 2, 1.5, w.detach(), **o),
        matrix,
        labels,
        positive,
    )
    case(
        f"multilabel_margin_loss {_reduction}",
        lambda x, t, o=_options: F.multilabel_margin_loss(x, t, **o),
        matrix,
        label_lists,
    )
    case(
        f"hinge_embedding_loss {_reduction}",
        lambda x, t, o=_options: F.hinge_embedding_loss(x, t % 2 * 2 - 1, **o),
        matrix,
        lambda: integers(9, 7, 9),
    )
    case(
        f"margin_ranking_loss {_reduction}",
        lambda x, t, o=_options: F.margin_ranking_loss(x, x.roll(1, 1), t % 2 * 2 - 1, **o),
        matrix,
        lambda: integers(9, 7, 9),
    )
    case(
        f"triplet_margin_loss {_reduction}",
        lambda x, o=_options: F.triplet_margin_loss(x, x.roll(1, 0), x.roll(2, 0), **o),
        matrix,
    )
    case(
        f"cosine_embedding_loss {_reduction}",
        lambda x, t, o=_options: F.cosine_embedding_loss(x, x.roll(1, 0), t % 2 * 2 - 1, **o),
        matrix,
        labels,
    )
case("multi_margin_loss, one sample", lambda x: F.multi_margin_loss(x[0], torch.tensor(4)), matrix)
case("nll_loss2d", lambda x, t: F.nll_loss(x, t), image, lambda: integers(4, 2, 13, 17))


def frames() -> Tensor:
    return numbers(12, 3, 6).log_softmax(2)


def sentences() -> Tensor:
    return torch.tensor([[1, 2, 2, 5, 3], [3, 3, 3, 0, 0], [4, 0, 0, 0, 0]])


for _reduction in ("none", "mean"):
    case(
        f"ctc_loss {_reduction}",
        lambda x, t, how=_reduction: F.ctc_loss(x, t, (12, 9, 12), (5, 3, 0), reduction=how),
        frames,
        sentences,
    )
case("ctc_loss, infinite", lambda x, t: F.ctc_loss(x, t, (5, 5, 1), (5, 3, 1), zero_infinity=True), frames, sentences)
case(
    "ctc_loss, in one row",
    lambda x: F.ctc_loss(x, torch.tensor([1, 2, 2, 4, 5, 5]), torch.tensor([12, 10, 9]), torch.tensor([3, 1, 2])),
    frames,
)
case("logcumsumexp", lambda x: x.logcumsumexp(1), matrix)
