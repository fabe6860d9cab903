"""Scaled attention under portable numerics: prints what differs as JSON.

    python mode_attention.py

`far`: cases whose results or gradients are not near float64's. `split`: ways to split the same queries and keys, with
other bits than the whole. `others`: what else is not as it should be.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import repro.portable.pytorch as portable

attention = functional.scaled_dot_product_attention
LOWEST = torch.finfo(torch.float32).min
TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 1e-2}
"""Beside the largest number: operands have 13 bits."""


def random(*shape: int, seed: int = 0) -> Tensor:
    numbers = np.random.Generator(np.random.Philox(seed + sum(shape)))
    return torch.from_numpy(numbers.standard_normal(shape, np.float32))


QUERY, KEY, VALUE = random(2, 4, 9, 16), random(2, 4, 13, 16), random(2, 4, 13, 16, seed=1)
SEEN = random(2, 1, 9, 13) > -0.3
BIAS = random(2, 1, 9, 13)
CASES: dict[str, Callable[..., Tensor]] = {
    "plain": attention,
    "causal, other lengths": lambda q, k, v: attention(q, k, v, is_causal=True),
    "causal": lambda q, k, v: attention(k, k, v, is_causal=True),
    "mask": lambda q, k, v: attention(q, k, v, SEEN),
    "numbers to add": lambda q, k, v: attention(q, k, v, BIAS.to(q.dtype)),
    "scale": lambda q, k, v: attention(q, k, v, scale=0.3),
    "grouped heads": lambda q, k, v: attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    "one head of keys": lambda q, k, v: attention(q, k[:, :1], v[:, :1]),
    "matrices": lambda q, k, v: attention(q[0, 0], k[0, 0], v[0, 0]),
}


def results(function: Callable[..., Tensor], dtype: torch.dtype) -> list[Tensor]:
    """The result, and gradients of what it takes."""
    given = [x.to(dtype).requires_grad_() for x in (QUERY, KEY, VALUE)]
    y = function(*given)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), given, materialize_grads=True)]


def far(dtype: torch.dtype, precision: str) -> list[str]:
    right = {name: results(function, torch.float64) for name, function in CASES.items()}
    tolerance = TOLERANCE[dtype] if precision == "high" else 1e-6
    result = []
    with portable.enable(precision=precision):
        for name, function in CASES.items():
            for y in [results(function, dtype) for _ in range(3)]:  # by kernels from the third time on
                errors = [(a - b).abs().max() / b.abs().max() for a, b in zip(y, right[name], strict=True)]
                result += [f"{name}, {dtype}, {precision}"] if max(errors) > tolerance else []
    return result


# --- splits -----------------------------------------------------------------------------------------------------------


def beside(x: Tensor, other: Tensor, first: bool) -> Tensor:
    return torch.cat([other, x] if first else [x, other], -2)


def padded(first: bool, numbers: bool) -> Tensor:
    """With five keys more that no query sees, before or after the others."""
    key, value = random(2, 4, 5, 16) * 100, random(2, 4, 5, 16) * 1e6
    seen = torch.cat([SEEN, torch.zeros(2, 1, 9, 5, dtype=torch.bool)][:: -1 if first else 1], -1)
    mask = torch.zeros(seen.shape).masked_fill(~seen, LOWEST) if numbers else seen
    return attention(QUERY, beside(KEY, key, first), beside(VALUE, value, first), mask)


def by_cache(size: int) -> Tensor:
    """So many queries at a time, each with the keys up to its own."""
    parts = []
    for start in range(0, 13, size):
        end = min(13, start + size)
        seen = torch.ones(end - start, end, dtype=torch.bool).tril(start)
        parts.append(attention(KEY[:, :, start:end], KEY[:, :, :end], VALUE[:, :, :end], seen))
    return torch.cat(parts, -2)


def split() -> list[str]:
    with portable.enable():
        masked, causal = attention(QUERY, KEY, VALUE, SEEN), attention(KEY, KEY, VALUE, is_causal=True)
        ways = {
            f"padding {first} {numbers}": (masked, padded(first, numbers))
            for first in (False, True)
            for numbers in (False, True)
        }
        ways |= {f"cache {size}": (causal, by_cache(size)) for size in (1, 4, 13)}
        garbage = torch.full((2, 4, 5, 16), torch.nan)
        hidden = torch.cat([SEEN, torch.zeros(2, 1, 9, 5, dtype=torch.bool)], -1)
        for name, mask in ("bool", hidden), ("numbers", torch.zeros(hidden.shape).masked_fill(~hidden, -torch.inf)):
            key, value = beside(KEY, garbage, False), beside(VALUE, garbage, False)
            ways[f"NaN that is hidden by {name}"] = masked, attention(QUERY, key, value, mask)
        ways["a sample alone"] = masked[1:], attention(QUERY[1:], KEY[1:], VALUE[1:], SEEN[1:])
        ways |= by_products() | by_flex() | by_modules() | {"a long softmax": (long_softmax(0), long_softmax(9000))}
    return [name for name, (whole, parts) in ways.items() if not torch.equal(whole, parts)]


def eager(query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None = None) -> Tensor:
    """Attention by products, as programs write it."""
    scores = query @ key.mT / 4
    return (scores if seen is None else scores.masked_fill(~seen, LOWEST)).softmax(-1).to(value.dtype) @ value


def by_products() -> dict[str, tuple[Tensor, Tensor]]:
    """The same splits of attention by products, of several types."""
    ways = {}
    hidden = torch.cat([torch.ones(9, 13, dtype=torch.bool), torch.zeros(9, 5, dtype=torch.bool)], -1)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        value = VALUE.to(dtype)
        more = beside(value, torch.full((2, 4, 5, 16), 1e4, dtype=dtype), False)
        padded = eager(QUERY, beside(KEY, random(2, 4, 5, 16) * 100, False), more, hidden)
        ways[f"products, {dtype}"] = eager(QUERY, KEY, value), padded
        triangle = torch.ones(13, 13, dtype=torch.bool).tril()
        steps = [eager(KEY[:, :, t : t + 1], KEY[:, :, : t + 1], value[:, :, : t + 1]) for t in range(13)]
        ways[f"products, {dtype}, cache"] = eager(KEY, KEY, value, triangle), torch.cat(steps, -2)
    rows = torch.cat([torch.eye(4)[1:2], random(2, 4), torch.zeros(1, 4), torch.full((1, 4), 0.25)])
    matrix = random(4, 7) * torch.exp2(torch.arange(4.0))[:, None]
    ways["rows of other samples"] = rows @ matrix, torch.cat([row[None] @ matrix for row in rows])
    ways["one matrix"] = ways["products, torch.float32"][0][0, 0], eager(QUERY[0, 0], KEY[0, 0], VALUE[0, 0])
    ways["einsum"] = torch.einsum("bhts,bhsd->bhtd", (QUERY @ KEY.mT / 4).softmax(-1), VALUE), eager(QUERY, KEY, VALUE)
    return ways


def by_flex() -> dict[str, tuple[Tensor, Tensor]]:
    """flex_attention, with keys that its function of scores hides, and the beginning of a causal one."""
    query, key, value = (x.detach() for x in (QUERY, KEY, VALUE))  # on a CPU it has no gradient
    more, scores = random(2, 4, 5, 16) * 100, lambda score, b, h, i, j: torch.where(j < 13, score, -torch.inf)
    whole, start = (
        flex_attention(
            *(x[:, :, :n] for x in (key, key, value)),
            block_mask=create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu"),
        )
        for n in (13, 9)
    )
    padded = flex_attention(query, beside(key, more, False), beside(value, more, False), score_mod=scores)
    return {"flex, padding": (flex_attention(query, key, value), padded), "flex, causal": (whole[:, :, :9], start)}


def by_modules() -> dict[str, tuple[Tensor, Tensor]]:
    """A module with padding and without, that returns weights or not."""
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x, more = random(3, 8, 16), random(3, 13, 16)
    more[:, :8] = x
    hidden = (torch.arange(13) > 7).expand(3, 13)
    results = {}
    for need in (False, True):
        padded, _ = module(more, more, more, key_padding_mask=hidden, need_weights=need)
        results[f"module {need}"] = module(x, x, x, need_weights=need)[0], padded[:, :8]
    return results


def long_softmax(more: int) -> Tensor:
    row = torch.cat([random(1, 20), torch.full((1, more), -torch.inf)], 1)
    return torch.stack([row.softmax(1)[:, :20], row.log_softmax(1)[:, :20], row.logsumexp(1).expand(1, 20)])


# --- others -----------------------------------------------------------------------------------------------------------


def near(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() < 2e-3 * b.abs().max())


def gradient_of_added(dtype: torch.dtype) -> Tensor:
    added = BIAS.to(dtype).requires_grad_()
    attention(QUERY.to(dtype), KEY.to(dtype), VALUE.to(dtype), added).square().sum().backward()
    assert added.grad is not None
    return added.grad


def second_gradient(dtype: torch.dtype) -> Tensor:
    query, key, value = (x.to(dtype).requires_grad_() for x in (QUERY, KEY, VALUE))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        (gradient,) = torch.autograd.grad(attention(query, key, value, SEEN).square().sum(), query, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), value)[0]


def dropped_out() -> bool:
    """True if shares that are dropped count for nothing, and the others for more; forward, backward."""
    ones = torch.eye(13).expand(2, 4, 13, 13).clone().requires_grad_()
    torch.manual_seed(0)
    shares = attention(QUERY, KEY, ones, dropout_p=0.25)
    whole = attention(QUERY, KEY, ones)
    (gradient,) = torch.autograd.grad(shares.sum(), ones)
    held = shares != 0
    return (
        near(shares, whole * held / 0.75)
        and near(gradient[..., 0], shares.sum(-2))
        and 0.7 < held.double().mean() < 0.8
    )


def others() -> list[str]:
    right = gradient_of_added(torch.float64), second_gradient(torch.float64)
    with portable.enable():
        results: dict[str, Any] = {
            "gradient of what is added": near(gradient_of_added(torch.float32), right[0]),
            "second gradient": near(second_gradient(torch.float32), right[1]),
            "nothing seen": not attention(QUERY, KEY, VALUE, torch.zeros(9, 13, dtype=torch.bool)).any(),
            "dropout": dropped_out(),
            "dropout of all": not attention(QUERY, KEY, VALUE, dropout_p=1.0).any(),
            "vmap": near(torch.func.vmap(attention)(QUERY, KEY, VALUE), attention(QUERY, KEY, VALUE)),
        }
    return [name for name, is_right in results.items() if not is_right]


if __name__ == "__main__":
    torch.set_num_threads(1)
    cases = [(torch.float32, "high"), (torch.float32, "highest"), (torch.bfloat16, "high")]
    print(json.dumps({"far": [name for case in cases for name in far(*case)], "split": split(), "others": others()}))
