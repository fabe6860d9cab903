"""Choices of PyTorch between several forms of one operation."""

from typing import Any

from repro.portable.pytorch.mode.dispatch import define

MATH = 0
"""torch.nn.attention.SDPBackend.MATH"""


@define("_fused_sdp_choice")
def fused_sdp_choice(*_: Any, **__: Any) -> int:
    """Attention by products and softmax, which have definitions, and gradients of them."""
    return MATH
