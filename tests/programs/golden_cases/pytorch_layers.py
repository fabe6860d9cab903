"""Operations of golden/operations.txt that PyTorch alone has: attention, recurrent layers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from programs.golden_cases.cases import Case, Input, array, filler, mask

CASES: dict[str, Case] = {}
case = filler(CASES)
aten = torch.ops.aten

PLANE, ROW, TIES = array(12, 20), array(20), array(8, 11, kind="ties")
SIGNAL, IMAGES, VOLUMES = array(2, 4, 10), array(2, 4, 8, 7), array(2, 2, 5, 6, 4)
OF_AXES = {1: SIGNAL, 2: IMAGES, 3: VOLUMES}

# --- layers -----------------------------------------------------------------------------------------------------------

_QUERY, _KEY, _VALUE = array(2, 3, 5, 8), array(2, 3, 6, 8), array(2, 3, 6, 4)
ATTENTION: dict[str, tuple[dict[str, Any], tuple[Input, ...]]] = {
    "": ({}, ()),
    "-causal": ({"is_causal": True, "scale": 0.3}, ()),
    "-mask": ({}, (mask(5, 6),)),
    "-bias": ({}, (array(2, 1, 5, 6),)),
    "-dropout": ({"dropout_p": 0.3}, ()),
}
for _name, (_options, _more) in ATTENTION.items():
    case(f"attention{_name}", partial(F.scaled_dot_product_attention, **_options), _QUERY, _KEY, _VALUE, *_more)
case(
    "attention-grouped",
    partial(F.scaled_dot_product_attention, enable_gqa=True),
    array(2, 4, 5, 8),
    array(2, 2, 6, 8),
    array(2, 2, 6, 8),
)


def weighted(module: nn.Module, arrays: tuple[Tensor, ...]) -> nn.Module:
    """A module of these parameters."""
    for name, each in zip([name for name, _ in module.named_parameters()], arrays, strict=True):
        place, _, last = name.rpartition(".")
        owner = module.get_submodule(place)
        del owner._parameters[last]
        setattr(owner, last, each)
    return module


def recurrent(kind: Any, packed: bool, *sizes: int, **options: Any) -> Callable[..., Any]:
    """Outputs and last states."""

    def function(x: Tensor, *arrays: Tensor) -> list[Tensor]:
        module = weighted(kind(*sizes, **options), arrays)
        given = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3, 1])) if packed else x
        y, state = module(given)
        return [y.data if packed else y, *(state if isinstance(state, tuple) else (state,))]

    return function


def shapes(module: nn.Module) -> list[Input]:
    return [array(*each.shape) for each in module.parameters()]


KINDS: dict[str, Any] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": partial(nn.RNN, nonlinearity="relu"),
}
CELLS: dict[str, Any] = {
    "lstm": nn.LSTMCell,
    "gru": nn.GRUCell,
    "rnn_tanh": nn.RNNCell,
    "rnn_relu": partial(nn.RNNCell, nonlinearity="relu"),
}
for _name, _kind in KINDS.items():
    _x = array(4, 3, 5)
    case(_name, recurrent(_kind, False, 5, 4), _x, *shapes(_kind(5, 4)))
    case(
        f"{_name}-both-ways",
        recurrent(_kind, False, 5, 4, 2, bidirectional=True),
        _x,
        *shapes(_kind(5, 4, 2, bidirectional=True)),
    )
    case(f"{_name}-packed", recurrent(_kind, True, 5, 4), _x, *shapes(_kind(5, 4)))
    _cell = CELLS[_name]
    case(
        f"{_name}-cell",
        lambda x, *arrays, cell=_cell: weighted(cell(5, 4), arrays)(x),
        array(3, 5),
        *shapes(_cell(5, 4)),
    )
case(
    "lstm-projected", recurrent(nn.LSTM, False, 5, 4, proj_size=3), array(4, 3, 5), *shapes(nn.LSTM(5, 4, proj_size=3))
)
