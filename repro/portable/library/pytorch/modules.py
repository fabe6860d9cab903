"""Modules with torch.nn's names and arguments.

They have PyTorch's parameters and state_dict keys, and another forward.
Initial weights are those that PyTorch draws, which may depend on the processor where they are normally distributed:
what starts equal everywhere is loaded from a file. Options that have no portable form raise a UsageError.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from repro.portable.arguments import check_fit, check_mask, check_shapes, dropout_key, refuse
from repro.portable.library.pytorch import functional


class Portable(nn.Module):
    """A portable module. A module of your own whose forward calls none but portable functions derives from it."""

    only: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """The values that have a portable form, for options of which not all have one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if obstacle := self.obstacle():
            option, remedy = obstacle
            raise refuse(type(self).__name__, f"{option} has no portable form; use {remedy}")

    def obstacle(self) -> tuple[str, str] | None:
        """An option that has no portable form, with its value, and what to use instead."""
        for option, values in self.only.items():
            if getattr(self, option) not in values:
                return f"{option}={getattr(self, option)}", str(values[0])
        return None


# --- layers with weights ----------------------------------------------------------------------------------------------


class Linear(Portable, nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)


class Conv2d(Portable, nn.Conv2d):
    only: ClassVar = {"padding_mode": ("zeros",)}

    def forward(self, input: Tensor) -> Tensor:
        return functional.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Embedding(Portable, nn.Embedding):
    only: ClassVar = {"max_norm": (None,), "scale_grad_by_freq": (False,), "sparse": (False,)}

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(input, self.weight, self.padding_idx)


class MultiheadAttention(Portable, nn.MultiheadAttention):
    """Batches only. It returns no weights, so None in their place.

    Where query, key and value are the same tensor, one product makes all three.
    """

    only: ClassVar = {
        "_qkv_same_embed_dim": (True,),
        "dropout": (0.0,),
        "bias_k": (None,),
        "add_zero_attn": (False,),
    }

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,  # noqa: ARG002
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,  # noqa: ARG002
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """query [N, T, E], key and value [N, S, E], or [T, N, E] and [S, N, E] without batch_first.

        The masks are bool, [N, S] and [T, S] or [N heads, T, S], True where a key is not seen, as PyTorch has it here.
        """
        check_fit("MultiheadAttention", query.dim() == key.dim() == value.dim() == 3, query, key, value)
        weights = self.in_proj_weight, self.in_proj_bias
        if query is key is value:
            projected = functional.linear(query, *weights).chunk(3, -1)
        else:
            thirds = zip(*((None,) * 3 if each is None else each.chunk(3) for each in weights), strict=True)
            inputs = zip((query, key, value), thirds, strict=True)
            projected = tuple(functional.linear(x, *third) for x, third in inputs)
        samples, rows = query.shape[:2] if self.batch_first else query.shape[1::-1]
        columns = key.shape[1 if self.batch_first else 0]
        seen = None
        if key_padding_mask is not None:
            _check_mask((samples, columns), key_padding_mask=key_padding_mask)
            seen = ~key_padding_mask[:, None, None]
        if attn_mask is not None:
            every = (samples * self.num_heads,) if attn_mask.dim() == 3 else ()
            _check_mask((*every, rows, columns), attn_mask=attn_mask)
            mask = ~attn_mask
            mask = mask.view(-1, self.num_heads, *mask.shape[1:]) if mask.dim() == 3 else mask
            seen = mask if seen is None else seen & mask
        q, k, v = (self._heads(x) for x in projected)
        y = functional.scaled_dot_product_attention(q, k, v, seen, is_causal=is_causal and attn_mask is None)
        y = y.transpose(1, 2).flatten(2)
        y = functional.linear(y, self.out_proj.weight, self.out_proj.bias)
        return y if self.batch_first else y.transpose(0, 1), None

    def _heads(self, x: Tensor) -> Tensor:
        """-> [N, heads, T, E / heads]."""
        x = x if self.batch_first else x.transpose(0, 1)
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def _check_mask(shape: tuple[int, ...], **masks: Tensor) -> None:
    """UsageError unless masks are bool, and of this shape."""
    for name, mask in masks.items():
        check_mask("MultiheadAttention", name, mask, shape)
    check_shapes("MultiheadAttention", shape, **masks)


class LayerNorm(Portable, nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Portable, nn.RMSNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Portable, nn.GroupNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _BatchNorm(Portable):
    def obstacle(self) -> tuple[str, str] | None:
        return ("momentum=None", "a number") if self.momentum is None else None

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        return functional.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self.momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    pass


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    pass


# --- pooling ----------------------------------------------------------------------------------------------------------


class MaxPool2d(Portable, nn.MaxPool2d):
    only: ClassVar = {"dilation": (1, (1, 1)), "return_indices": (False,), "ceil_mode": (False,)}

    def forward(self, input: Tensor) -> Tensor:
        return functional.max_pool2d(input, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Portable, nn.AvgPool2d):
    only: ClassVar = {"ceil_mode": (False,), "divisor_override": (None,)}

    def obstacle(self) -> tuple[str, str] | None:
        if not self.count_include_pad and self.padding not in (0, (0, 0)):
            return "count_include_pad=False", "True, or no padding"
        return super().obstacle()

    def forward(self, input: Tensor) -> Tensor:
        return functional.avg_pool2d(input, self.kernel_size, self.stride, self.padding)


class AdaptiveAvgPool2d(Portable, nn.AdaptiveAvgPool2d):
    only: ClassVar = {"output_size": (1, (1, 1))}

    def forward(self, input: Tensor) -> Tensor:
        return functional.adaptive_avg_pool2d(input, self.output_size)


# --- number by number -------------------------------------------------------------------------------------------------


class ReLU(Portable, nn.ReLU):
    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input)


class GELU(Portable, nn.GELU):
    only: ClassVar = {"approximate": ("none", "tanh")}

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, self.approximate)


class SiLU(Portable, nn.SiLU):
    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input)


class Tanh(Portable, nn.Tanh):
    def forward(self, input: Tensor) -> Tensor:
        return functional.tanh(input)


class Sigmoid(Portable, nn.Sigmoid):
    def forward(self, input: Tensor) -> Tensor:
        return functional.sigmoid(input)


class Softmax(Portable, nn.Softmax):
    def obstacle(self) -> tuple[str, str] | None:
        return ("dim=None", "a number") if self.dim is None else None

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim)


class Add(nn.Module):
    """a + b, of one shape."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return functional.add(a, b)


# --- dropout ----------------------------------------------------------------------------------------------------------


class _Dropout(Portable):
    """Dropout whose numbers follow from a seed, a stream number and a count of the calls in training.

    seed: an int below 2^32, that of the network. stream: an int below 2^30, another one for each dropout of a network;
    number_dropouts() gives them. The count is a buffer, `step`, which a checkpoint holds, so that a resumed run goes on
    with it; a state_dict without one leaves it as it is. Calls that are repeated in the backward pass, as by
    torch.utils.checkpoint, count twice, so don't repeat a dropout.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, *, seed: int = 0, stream: int | None = None) -> None:
        super().__init__(p, inplace)
        self.number(seed, stream)

    def obstacle(self) -> tuple[str, str] | None:
        return None if 0 <= self.p < 1 else (f"p={self.p}", "less than 1")

    def number(self, seed: int, stream: int | None) -> None:
        """Starts at the first step of a stream."""
        key = dropout_key(type(self).__name__, seed, stream or 0)
        self.seed, self.stream = seed, stream
        self.register_buffer("key", torch.tensor(key), persistent=False)
        self.register_buffer("step", torch.tensor(0))

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        state.setdefault(prefix + "step", self.step)
        super()._load_from_state_dict(state, prefix, *others)

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or not self.p:
            return input
        if self.stream is None:
            remedy = "call number_dropouts(model, seed) when the model is built"
            raise refuse(type(self).__name__, f"no stream number; {remedy}")
        dropped = functional.dropout(input, self.p, self.key, self.step, isinstance(self, nn.Dropout2d))
        self.step.add_(1)
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}, seed={self.seed}, stream={self.stream}"


class Dropout(_Dropout, nn.Dropout):
    __doc__ = _Dropout.__doc__


class Dropout2d(_Dropout, nn.Dropout2d):
    __doc__ = _Dropout.__doc__


def number_dropouts(model: nn.Module, seed: int) -> nn.Module:
    """Gives each portable dropout of a model this seed and a stream number, from 0, in the order of model.modules().

    Their counts start anew.
    """
    dropouts = [module for module in model.modules() if isinstance(module, _Dropout)]
    for stream, dropout in enumerate(dropouts):
        dropout.number(seed, stream)
    return model


# --- losses -----------------------------------------------------------------------------------------------------------


class CrossEntropyLoss(Portable, nn.CrossEntropyLoss):
    only: ClassVar = {"weight": (None,), "ignore_index": (-100,), "reduction": ("mean",)}

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(input, target, self.label_smoothing)


class MSELoss(Portable, nn.MSELoss):
    only: ClassVar = {"reduction": ("mean",)}

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(input, target)
