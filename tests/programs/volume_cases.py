"""Cases of mode_indexing.py: convolutions of volumes, and those of float64."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from programs.indexing_cases import case, numbers


def convolved(dimensions: int, transposed: bool, **options: Any) -> Callable[..., Tensor]:
    name = f"conv{'_transpose' if transposed else ''}{dimensions}d"
    return lambda x, w, b: getattr(torch.nn.functional, name)(x, w, b, **options)


def made(*shape: int, kind: torch.dtype, seed: int = 0) -> Callable[[], Tensor]:
    return lambda: (numbers(*shape, seed=seed) / 3).to(kind)


SIZES = {1: (11,), 2: (9, 8), 3: (7, 6, 5)}
KERNELS = {1: (3,), 2: (3, 2), 3: (3, 2, 2)}
OPTIONS: list[dict[str, Any]] = [{}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2, "padding": 2}]

for _dimensions, _type in ((3, torch.float32), (3, torch.bfloat16), *((n, torch.float64) for n in (1, 2, 3))):
    for _options in OPTIONS if _type != torch.bfloat16 else OPTIONS[:1]:
        for _transposed in (False, True):
            _outer = (4, 6 // _options.get("groups", 1)) if _transposed else (6, 4 // _options.get("groups", 1))
            _more = {"output_padding": 1} if _transposed and "stride" in _options else {}
            case(
                f"conv{_dimensions}d {_type} {_options} {_transposed}",
                convolved(_dimensions, _transposed, **_options, **_more),
                made(2, 4, *SIZES[_dimensions], kind=_type),
                made(*_outer, *KERNELS[_dimensions], kind=_type, seed=4),
                made(6, kind=_type, seed=5),
                close=2e-3 if _type == torch.float32 else None,
            )
