"""Attention: by products and softmax, whichever kernel is asked for."""

from typing import Any

import torch
from torch import Tensor

from repro.portable.pytorch.mode.dispatch import define, replace

MATH = 0
"""torch.nn.attention.SDPBackend.MATH"""


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
) -> Tensor:
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
    return torch._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]
