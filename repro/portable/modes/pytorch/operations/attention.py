"""Attention, with the library's definition: a query depends on the keys that it sees alone."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from repro.portable.compiler.pytorch.plan import run
from repro.portable.definitions.attention import attention
from repro.portable.modes.pytorch.dispatcher.dispatch import counts, with_native_ops
from repro.portable.modes.pytorch.dispatcher.tables import define, replace
from repro.portable.modes.pytorch.dispatcher.types import as_float32
from repro.portable.modes.pytorch.operations.linear import PLAIN, is_plain, is_transformed

MATH = 0
"""torch.nn.attention.SDPBackend.MATH"""
kernels = with_native_ops(run)


@define("_fused_sdp_choice")
def fused_sdp_choice(*_: Any, **__: Any) -> int:
    return MATH


@replace("scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    slices: int,
) -> Tensor:
    options = {"scale": scale, "enable_gqa": enable_gqa}
    if not _is_defined(query, key, value, attn_mask, is_causal, enable_gqa):
        return _by_products(query, key, value, attn_mask, dropout_p, is_causal, **options)
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    batch = torch.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    shape = *query.shape[:-1], key.shape[-2]
    mask, bias = (attn_mask, None) if attn_mask is None or attn_mask.dtype == torch.bool else (None, attn_mask)
    square = shape[-2] == shape[-1]
    if is_causal and not square:
        mask = torch.ones(shape[-2:], dtype=torch.bool, device=query.device).tril()
    if bias is not None and bias.requires_grad:
        bias = bias.expand(shape)
    held = torch.native_dropout(query.new_ones(shape), dropout_p, True)[1] if dropout_p else None
    keep = 1.0 - dropout_p or 1.0  # where nothing is held, any
    how = {"causal": is_causal and square, "scale": scale, "keep": keep, "slices": slices}
    return _Attention.apply(query, key, value, mask, bias, held, how)


def _is_defined(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, enable_gqa: bool
) -> bool:
    """True if the definition takes these; if not, PyTorch decomposes attention, and raises its errors."""
    if not all(is_plain(x) and x.layout == torch.strided and x.numel() and x.dim() > 1 for x in (query, key, value)):
        return False
    if mask is not None and not _fits(mask, query, key):
        return False
    groups = [query.shape[-3] % x.shape[-3] for x in (key, value)] if enable_gqa and query.dim() > 2 else []
    return (
        query.dtype == key.dtype == value.dtype
        and query.shape[-1] == key.shape[-1]
        and key.shape[-2] == value.shape[-2]
        and not any(groups)
        and not (is_causal and mask is not None)
        and not is_transformed()
    )


def _fits(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    """True for a mask, or numbers to add, of a shape that broadcasts to that of the scores."""
    shape = *query.shape[:-1], key.shape[-2]
    sizes = zip(mask.shape[::-1], shape[::-1], strict=False)
    return (
        type(mask) in PLAIN
        and mask.dtype in (torch.bool, query.dtype)
        and mask.layout == torch.strided
        and mask.dim() <= len(shape)
        and all(own in (1, of_scores) for own, of_scores in sizes)
    )


def _by_products(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, **options: Any
) -> Tensor:
    """Products, softmax and products, as PyTorch takes it apart."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -torch.inf)
    return torch._scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, **options)[0]


class _Attention(Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, bias: Any, held: Any, how: Any
    ) -> Tensor:
        counts["scaled_dot_product_attention"] += 1
        arrays = [None if x is None else as_float32(x) for x in (query, key, value, mask, bias, held)]
        y, saved = kernels(attention.forward, *arrays, **how)
        ctx.how = how
        ctx.save_for_backward(query, key, value, mask, bias, held, *saved)
        return y.to(query.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        *arrays, mask, bias, held = ctx.saved_tensors[:6]
        needs, how = ctx.needs_input_grad[:6], ctx.how
        if torch.is_grad_enabled():  # a gradient of this gradient is asked for
            return *_differentiable(gradient, arrays, mask, bias, held, needs, how), None
        saved = ctx.saved_tensors[6:]
        gradients = kernels(attention.backward, saved, as_float32(gradient), needs, (None,) * 6, held=held, **how)
        dtype = arrays[0].dtype
        return *(each.to(dtype) if need else None for each, need in zip(gradients, needs, strict=True)), None


def _differentiable(gradient: Tensor, arrays: Any, mask: Any, bias: Any, held: Any, needs: Any, how: Any) -> Any:
    """Gradients by operations that have gradients, too."""
    with torch.enable_grad():
        query, key, value = arrays
        y = _composed(query, key, value, mask, bias, held, how)
        asked = [x for x, need in zip((*arrays, mask, bias, held), needs, strict=True) if need]
        gradients = iter(torch.autograd.grad(y, asked, gradient, create_graph=True))
    return [next(gradients) if need else None for need in needs]


def _composed(query: Tensor, key: Tensor, value: Tensor, mask: Any, bias: Any, held: Any, how: Any) -> Tensor:
    scale = 1 / math.sqrt(query.shape[-1]) if how["scale"] is None else how["scale"]
    scores = (query @ key.mT) * scale
    if bias is not None:
        scores = scores + bias
    if how["causal"]:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    shares = torch._safe_softmax(scores, -1)
    return (shares if held is None else shares * held * (1.0 / how["keep"])) @ value
