"""Cases of mode_inputs.py: functions of empty tensors, of tensors without axes, and of other unusual shapes.

Their results and gradients are integers, zeros and NaN, which PyTorch's own kernels compute exactly, too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Shape = tuple[int, ...]
CASES: dict[str, tuple[Callable[..., Any], list[Shape]]] = {}

_how: Any
_kind: Any
_labels: Any
_pools: Any


def case(name: str, function: Callable[..., Any], *shapes: Shape) -> None:
    assert name not in CASES, name
    CASES[name] = function, list(shapes)


def integers(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.long)


def numbers(*shape: int, dtype: torch.dtype) -> Tensor:
    """Small integers."""
    return (torch.arange(torch.Size(shape).numel()) * 5 % 7 - 3).to(dtype).view(shape)


def unpooled(pools: tuple[Callable[..., Any], Callable[..., Tensor]], x: Tensor) -> Tensor:
    """Numbers below the smallest normal float32, where there are."""
    pool, back = pools
    return back(*pool(x * 2.0**-140, 2, return_indices=True), 2) * 2.0**100


def ones(module: nn.Module, x: Tensor) -> nn.Module:
    """A module whose parameters are 1."""
    for parameter in module.to(x.dtype).parameters():
        nn.init.ones_(parameter)
    return module


# --- empty batches ----------------------------------------------------------------------------------------------------

for _d in (1, 2, 3):
    _image, _kernel = (5,) * _d, (3,) * _d
    _conv, _transposed = getattr(F, f"conv{_d}d"), getattr(F, f"conv_transpose{_d}d")
    case(f"conv{_d}d", _conv, (0, 2, *_image), (4, 2, *_kernel), (4,))
    case(f"conv{_d}d of no channels", _conv, (2, 0, *_image), (4, 0, *_kernel), (4,))
    case(f"conv{_d}d groups", partial(_conv, groups=2, padding=1), (0, 2, *_image), (4, 1, *_kernel), (4,))
    case(f"conv_transpose{_d}d", _transposed, (0, 2, *_image), (2, 4, *_kernel), (4,))
    for _pool in ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool"):
        case(f"{_pool}{_d}d", partial(lambda f, x: f(x, 2), getattr(F, f"{_pool}{_d}d")), (0, 2, *_image))
    case(f"group_norm{_d}d", lambda x, w, b: F.group_norm(x, 2, w, b), (0, 4, *_image), (4,), (4,))
    case(f"batch_norm{_d}d", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (0, 4, *_image), (4,), (4,))
    case(f"instance_norm{_d}d", lambda x, w, b: F.instance_norm(x, None, None, w, b), (0, 4, *_image), (4,), (4,))
case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (0, 4), (4,), (4,))
case("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), (0, 3), (3,), (3,))
case("layer_norm of axes", lambda x, w, b: F.layer_norm(x, (3, 4, 5), w, b), (0, 3, 4, 5), (3, 4, 5), (3, 4, 5))
case("layer_norm of nothing", lambda x, w, b: F.layer_norm(x, (2, 0), w, b), (3, 2, 0), (2, 0), (2, 0))
case("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), (0, 3), (3,))
case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), (0, 3), (0, 1))
case("linear", F.linear, (2, 0, 3), (4, 3), (4,))
case("bilinear", F.bilinear, (0, 3), (0, 4), (5, 3, 4), (5,))
case("attention", F.scaled_dot_product_attention, *[(0, 2, 4, 8)] * 3)
case("attention of no keys", F.scaled_dot_product_attention, (1, 2, 4, 8), (1, 2, 0, 8), (1, 2, 0, 8))
case("grid_sample", partial(F.grid_sample, align_corners=False), (0, 1, 4, 4), (0, 2, 2, 2))
for _kind in (nn.LSTM, nn.GRU, nn.RNN):
    case(_kind.__name__, partial(lambda kind, x: ones(kind(3, 4), x)(x)[0], _kind), (5, 0, 3))
    case(f"{_kind.__name__} of no steps", partial(lambda kind, x: ones(kind(3, 4), x)(x)[0], _kind), (0, 2, 3))
case("encoder layer", lambda x: ones(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), x)(x), (0, 5, 4))
for _reduction in ("mean", "sum", "none"):
    for _loss in (
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"),
        *("binary_cross_entropy_with_logits", "soft_margin_loss", "poisson_nll_loss"),
    ):
        _function = partial(getattr(F, _loss), reduction=_reduction)
        case(f"{_loss} {_reduction}", partial(lambda f, x, y: f(x, y.detach()), _function), (0, 3), (0, 3))
    _labels = {"cross_entropy": (0,), "nll_loss": (0,)}
    for _loss, _shape in _labels.items():
        _function = partial(getattr(F, _loss), reduction=_reduction)
        case(f"{_loss} {_reduction}", partial(lambda f, s, x: f(x, integers(*s)), _function, _shape), (0, 3))
    _ctc = partial(F.ctc_loss, targets=integers(0, 2), input_lengths=integers(0), target_lengths=integers(0))
    case(f"ctc_loss {_reduction}", partial(_ctc, reduction=_reduction), (4, 0, 3))
for _loss, _target in {"multi_margin_loss": (0,), "multilabel_margin_loss": (0, 3)}.items():
    _function = partial(getattr(F, _loss), reduction="none")  # PyTorch's own sum of nothing is what memory holds
    case(_loss, partial(lambda f, s, x: f(x, integers(*s)), _function, _target), (0, 3))

# --- no axes ----------------------------------------------------------------------------------------------------------

for _index, _source in (((1,), ()), ((1,), (1,)), ((), ())):
    _how = f"{_index} {_source}"
    _at = partial(integers, *_index)
    case(f"index_add {_how}", partial(lambda at, x, y: x.index_add(0, at(), y), _at), (), _source)
    case(f"index_copy {_how}", partial(lambda at, x, y: x.index_copy(0, at(), y), _at), (), _source)
    for _kind in ("mean", "prod", "amax", "amin"):
        case(
            f"index_reduce {_kind} {_how}",
            partial(lambda at, k, x, y: x.index_reduce(0, at(), y, k), _at, _kind),
            (),
            _source,
        )
for _shape in ((), (1,)):
    _at = partial(integers, *_shape)
    case(f"index_select {_shape}", partial(lambda at, x: x.index_select(0, at()), _at), ())
    case(f"gather {_shape}", partial(lambda at, x: x.gather(0, at()), _at), ())
    case(f"scatter {_shape}", partial(lambda at, x, y: x.scatter(0, at(), y), _at), (), _shape)
    case(f"scatter_add {_shape}", partial(lambda at, x, y: x.scatter_add(0, at(), y), _at), (), _shape)
    for _kind in ("sum", "mean", "prod", "amax", "amin"):
        case(
            f"scatter_reduce {_kind} {_shape}",
            partial(lambda at, k, x, y: x.scatter_reduce(0, at(), y, k), _at, _kind),
            (),
            _shape,
        )
case("take", lambda x: x.take(integers(2)), ())
case("put", lambda x, y: x.put(integers(1), y, accumulate=True), (), (1,))
case("index_put", lambda x, y: x.index_put((torch.tensor(True),), y, accumulate=True), (), (1,))
for _name in (
    *("cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax", "sum", "mean", "prod", "amax", "sort", "median"),
    *("mode", "cummax", "cummin", "argsort", "nansum", "logsumexp", "aminmax", "topk", "kthvalue"),
):
    _options = {"dim": -1} if _name == "aminmax" else {}
    _given = () if _name == "aminmax" else (1,) if _name in ("topk", "kthvalue") else (0,)
    case(
        _name, partial(lambda name, given, options, x: getattr(x, name)(*given, **options), _name, _given, _options), ()
    )

# --- others -----------------------------------------------------------------------------------------------------------

for _name, _shape in {"1-d": (4,), "0-d": ()}.items():
    _label = partial(torch.tensor, 2 if _shape else 0)
    _labels_of = partial(torch.tensor, [1, 2, -1, 0] if _shape else 0)
    for _reduction in ("sum", "none"):
        _how = partial(F.multi_margin_loss, reduction=_reduction)
        case(f"multi_margin_loss {_name} {_reduction}", partial(lambda f, t, x: f(x, t()) * 4, _how, _label), _shape)
        _how = partial(F.multilabel_margin_loss, reduction=_reduction)
        case(
            f"multilabel_margin_loss {_name} {_reduction}",
            partial(lambda f, t, x: f(x, t()) * 4, _how, _labels_of),
            _shape,
        )
case("multi_margin_loss 1-d of one label", lambda x: F.multi_margin_loss(x, integers(1), reduction="none") * 4, (4,))
for _d in (1, 2, 3):
    for _stride, _dilation, _more, _padding, _groups in (
        (2, 4, 3, 1, 1),
        (2, 3, 2, 0, 2),
        (3, 4, 3, 2, 2),
        (1, 2, 1, 0, 1),
    ):
        _how = (_stride, _padding, _more, _groups, _dilation)
        case(
            f"conv_transpose{_d}d with stride, padding, output_padding, groups, dilation {_how}",
            partial(lambda f, how, x, w, b: f(x, w, b, *how), getattr(F, f"conv_transpose{_d}d"), _how),
            *((2, 2, *(4,) * _d), (2, 3, *(3,) * _d), (3 * _groups,)),
        )
    _pools = getattr(F, f"max_pool{_d}d"), getattr(F, f"max_unpool{_d}d")
    case(f"max_unpool{_d}d of tiny numbers", partial(lambda pools, x: unpooled(pools, x), _pools), (1, 1, *(4,) * _d))
for _way in (False, True):
    _how = ([2], [1], [1], _way, [int(_way)], 1)
    _channels = (2, 3, 3, 3) if _way else (3, 2, 3, 3)
    case(
        f"one stride for two axes {_way}",
        partial(lambda how, x, w, b: torch.convolution(x, w, b, *how), _how),
        (2, 2, 5, 5),
        _channels,
        (3,),
    )
for _number in (1e40, -1e40, 1e-60, float("inf"), float("nan")):
    case(f"a number beyond float32, {_number}", lambda x, n=_number: (x * n, n - x, x / n, n / (x + 4)), (4,))


def results(name: str, dtype: torch.dtype) -> list[Any]:
    """The results of a case, and the gradients of its inputs, as types, shapes and numbers; or the error."""
    function, shapes = CASES[name]
    leaves = [numbers(*shape, dtype=dtype).requires_grad_() for shape in shapes]
    try:
        result = function(*leaves)
        result = list(result) if isinstance(result, (tuple, list)) else [result]
        summed = [each.sum() for each in result if each.requires_grad]
        gradients = torch.autograd.grad(summed, leaves, allow_unused=True) if summed else ()
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    given = [each for each in (*result, *gradients) if each is not None]
    return [[str(each.dtype), list(each.shape), str((each.double() + 0.0).tolist())] for each in given]
