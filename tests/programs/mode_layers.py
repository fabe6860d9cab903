"""Recurrent layers, attention, optimizers and others under portable numerics: prints what differs as JSON."""

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.rnn import pack_padded_sequence

import repro.portable.pytorch as portable
from repro.portable.modes.pytorch.operations import recurrent

NUMBERS = np.random.default_rng(0)
NEAR = 2e-3
"""Of the largest number of a result."""


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.from_numpy(np.asarray(NUMBERS.standard_normal(shape), np.float32)).to(dtype)


def same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def near(results: Sequence[Tensor], right: Sequence[Tensor]) -> bool:
    return all(
        bool((a.double() - b).abs().max() <= NEAR * b.abs().max().clamp(min=1e-6))
        for a, b in zip(results, right, strict=True)
    )


# --- recurrent layers -------------------------------------------------------------------------------------------------

LAYERS: dict[str, Callable[..., Any]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
    "lstm with projections": lambda *sizes, **options: nn.LSTM(*sizes, proj_size=3, **options),
}
FORMS: dict[str, dict[str, Any]] = {
    "packed, two layers, both directions": {"num_layers": 2, "bidirectional": True},
    "rows first, no biases": {"bias": False, "batch_first": True},
}


def passed(model: nn.RNNBase, x: Tensor, packed: bool) -> list[Tensor]:
    """Outputs, last states, the gradient of x, then those of weights."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    given = pack_padded_sequence(x, torch.tensor([5, 3, 3, 1]), batch_first=model.batch_first) if packed else x
    result, state = model(given)
    result = result.data if packed else result
    states = state if isinstance(state, tuple) else (state,)
    (result.square().sum() + sum(each.square().sum() for each in states)).backward()
    assert x.grad is not None
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    return [result.detach(), *(each.detach() for each in states), x.grad, *gradients]


def twice(model: nn.RNNBase, x: Tensor) -> list[Tensor]:
    """Gradients of a gradient."""
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x)[0].square().sum(), x, create_graph=True)
    return list(torch.autograd.grad(slope.square().sum(), [x, *model.parameters()], allow_unused=False))


def recurrence() -> dict[str, list[str]]:
    results: dict[str, list[str]] = {"differ": [], "far": [], "threads": []}
    plain = recurrent._is_plain
    for kind, layer in LAYERS.items():
        for form, options in FORMS.items():
            name, packed = f"{kind}, {form}", "packed" in form
            model, x = layer(6, 8, **options), random(4, 5, 6) if "first" in form else random(5, 4, 6)
            right = passed(copy.deepcopy(model).double(), x.double(), packed)
            with portable.enable():
                first = passed(model, x, packed)
                torch.set_num_threads(2)
                second = passed(model, x, packed)  # by kernels
                torch.set_num_threads(1)
                recurrent._is_plain = lambda *_: False
                separate = passed(model, x, packed)
                recurrent._is_plain = plain
            states = 4 if "lstm" in kind else 3
            results["differ"] += [] if same(first[:states], separate[:states]) else [name]
            results["threads"] += [] if same(first, second) else [name]
            results["far"] += [] if near(first, right) else [name]
        model, x = layer(6, 8), random(5, 4, 6)
        right = twice(copy.deepcopy(model).double(), x.double())
        with portable.enable():
            results["far"] += [] if near(twice(model, x), right) else [f"{kind}, twice"]
    return results


def cells() -> list[str]:
    """Kinds whose cell and whose layer of one step differ."""
    results = []
    for kind, layer, cell in (("lstm", nn.LSTM, nn.LSTMCell), ("gru", nn.GRU, nn.GRUCell), ("rnn", nn.RNN, nn.RNNCell)):
        model, one = layer(6, 8), cell(6, 8)
        one.load_state_dict({name.removesuffix("_l0"): each for name, each in model.state_dict().items()})
        x = random(4, 6)
        with portable.enable():
            whole, single = model(x[None])[0][0], one(x)
        results += [] if torch.equal(whole, single[0] if kind == "lstm" else single) else [kind]
    return results


# --- optimizers -------------------------------------------------------------------------------------------------------

SHAPES = ((5, 7), (3,), (), (2, 3, 4))
OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    (optim.AdamW, {"weight_decay": 0.1}),
    (optim.AdamW, {"maximize": True}),
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.RMSprop, {"momentum": 0.9, "centered": True}),
    (optim.Adamax, {}),
    (optim.Adadelta, {}),
]
FUSED = {optim.Adam, optim.AdamW, optim.SGD, optim.Adagrad}
ROUNDING = {optim.Adagrad, optim.RMSprop, optim.Adamax, optim.Adadelta}
"""PyTorch's foreach form of these rounds halves at other places."""


def weights(kind: Any, options: dict[str, Any], dtype: torch.dtype, given: Any) -> list[Tensor]:
    """After five steps, with a learning rate that changes."""
    start, gradients = given
    results = [nn.Parameter(each.to(dtype).clone()) for each in start]
    optimizer = kind(results, **options)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in gradients:
        for weight, gradient in zip(results, step, strict=True):
            weight.grad = gradient.to(dtype).clone()
        optimizer.step()
        schedule.step()
    return [each.detach() for each in results]


def steps() -> dict[str, list[str]]:
    results: dict[str, list[str]] = {"differ": [], "far": []}
    given = [random(*shape) for shape in SHAPES], [[random(*shape) for shape in SHAPES] for _ in range(5)]
    for kind, options in OPTIMIZERS:
        right = weights(kind, options | {"foreach": False}, torch.float64, given)
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            name = f"{kind.__name__} {options} {dtype}"
            with portable.enable():
                one = weights(kind, options | {"foreach": False}, dtype, given)
                forms = ["fused", "fused"] if kind in FUSED else []
                if dtype != torch.bfloat16 or kind not in ROUNDING:
                    forms.append("foreach")
                for form in forms:  # fused steps by kernels, too: from the second time on
                    other = weights(kind, options | {form: True}, dtype, given)
                    results["differ"] += [] if same(one, other) else [f"{name} {form}"]
            results["far"] += [] if dtype == torch.bfloat16 or near(one, right) else [name]
    return results


# --- others -----------------------------------------------------------------------------------------------------------


def attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> list[Tensor]:
    attention = F.scaled_dot_product_attention
    added = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -1.0)
    return [
        attention(query, key, value),
        attention(query, key, value, is_causal=True),
        attention(query, key, value, mask),
        attention(query, key, value, added, scale=0.3),
        attention(query, key[:, :2], value[:, :2], enable_gqa=True),
        *torch.func.vmap(attention)(query, key, value),
    ]


def grouped(x: Tensor, matrices: Tensor) -> list[Tensor]:
    x, matrices = x.detach().requires_grad_(), matrices.detach().requires_grad_()
    ends = torch.tensor([4, 4, 9], dtype=torch.int32)
    if x.dtype == torch.float64:  # PyTorch has none of this type
        parts = [x[:4] @ matrices[0], x[4:9] @ matrices[2]]
        y = torch.cat(parts)
    else:
        y = F.grouped_mm(x, matrices, offs=ends)[:9]
    return [y.detach(), *torch.autograd.grad(y.square().sum(), (x, matrices))]


def factors(x: Tensor) -> list[Tensor]:
    return [part for shape in (x, x.mT, x[:, :1]) for part in torch.linalg.qr(shape)]


def encoded(x: Tensor) -> list[Tensor]:
    """By layers that PyTorch computes by a kernel of their own in evaluation."""
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1).to(torch.float32)
    numbers = np.random.default_rng(1)
    for each in model.parameters():
        each.data.copy_(torch.from_numpy(np.asarray(numbers.standard_normal(each.shape) * 0.3)))
    model = model.to(x.dtype).eval()
    padding = torch.tensor([[False] * 4 + [True]] * len(x))
    with torch.no_grad():
        return [model(x), model(x, src_key_padding_mask=padding)[:, :4]]


def others() -> list[str]:
    query, key, value = random(3, 2, 4, 6, 8)
    cases: dict[str, tuple[Callable[..., list[Tensor]], tuple[Tensor, ...]]] = {
        "attention": (attended, (query, key, value, random(6, 6) > -0.5)),
        "grouped": (grouped, (random(9, 8), random(3, 8, 16))),
        "factors": (factors, (random(2, 6, 4),)),
        "encoder": (encoded, (random(2, 5, 16),)),
    }
    results = []
    for name, (function, arguments) in cases.items():
        right = function(*(each.double() if each.is_floating_point() else each for each in arguments))
        with portable.enable():
            results += [] if near(function(*arguments), right) else [name]
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(json.dumps({"recurrent": recurrence(), "cells": cells(), "optimizers": steps(), "far": others()}))
