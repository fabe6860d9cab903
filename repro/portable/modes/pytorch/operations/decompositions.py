"""Operations that PyTorch's own table takes apart into smaller ones."""

from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops, with_portable_ops
from repro.portable.modes.pytorch.dispatcher.tables import Function, compose, definitions

NAMES = """
    native_dropout_backward mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward
    huber_loss huber_loss_backward binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
    soft_margin_loss soft_margin_loss_backward
    elu elu_backward celu selu softplus softplus_backward mish_backward log_sigmoid_forward log_sigmoid_backward glu
    glu_backward hardswish hardswish_backward hardsigmoid hardsigmoid_backward
    logsumexp trace addr_never _weight_norm_interface_never dist logaddexp logaddexp2 rrelu_with_noise
    linspace_never xlogy special_entr unfold_backward_never
    frobenius_norm
"""
"""Without their overloads."""


def _of_some(operation: Function, function: Function) -> Function:
    """The gradient of a loss, which divides by the number of samples; of none PyTorch's own kernel computes nothing."""
    own = with_native_ops(operation)

    @wraps(function)
    def computed(grad_output: Tensor, self: Tensor, *arguments: Any, **options: Any) -> Any:
        return (function if self.numel() else own)(grad_output, self, *arguments, **options)

    return computed


for _name in NAMES.split():
    _packet = getattr(torch.ops.aten, _name, None)
    for _kind in _packet.overloads() if _packet is not None else ():
        _full = _name if _kind == "default" else f"{_name}.{_kind}"
        _function = decomposition_table.get(getattr(_packet, _kind))
        if _function is not None and _full not in definitions and not _kind.endswith("out"):
            compose(_full)(
                _function if not _name.endswith("loss_backward") else _of_some(getattr(_packet, _kind), _function)
            )


@compose("rrelu_with_noise_backward")
def rrelu_with_noise_backward(
    grad_output: Tensor, self: Tensor, noise: Tensor, lower: Any, upper: Any, training: bool, self_is_result: bool
) -> Tensor:
    if training and upper - lower > 1e-6:  # as PyTorch has it
        return grad_output * noise
    return torch.ops.aten.leaky_relu_backward(grad_output, self, (lower + upper) / 2, self_is_result)


# --- float64 ----------------------------------------------------------------------------------------------------------

DOUBLES = """
    native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward native_batch_norm native_batch_norm_backward _native_batch_norm_legit
    _native_batch_norm_legit_no_training
"""
"""Defined for float32; for float64 they are taken apart into sums and functions, which are defined for it."""


def _by_type(function: Function, of_doubles: Function) -> Function:
    @wraps(function)
    def chosen(*arguments: Any, **options: Any) -> Any:
        first = next(each for each in arguments if isinstance(each, Tensor))
        return (of_doubles if first.dtype == torch.float64 else function)(*arguments, **options)

    return chosen


for _name in DOUBLES.split():
    _packet = getattr(torch.ops.aten, _name)
    for _kind in _packet.overloads():
        _full = _name if _kind == "default" else f"{_name}.{_kind}"
        _function = decomposition_table.get(getattr(_packet, _kind))
        if _full in definitions and _function is not None:
            _definition = definitions[_full]
            definitions[_full] = replace(
                _definition, function=_by_type(_definition.function, with_portable_ops(_function))
            )
