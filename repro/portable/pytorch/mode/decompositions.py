"""Operations that PyTorch's own table takes apart into smaller ones."""

import torch
from torch._decomp import decomposition_table

from repro.portable.pytorch.mode.dispatch import compose, definitions

NAMES = """
    _softmax_backward_data native_dropout_backward mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward
    huber_loss huber_loss_backward binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
    nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward soft_margin_loss soft_margin_loss_backward
    elu elu_backward celu selu softplus softplus_backward mish_backward log_sigmoid_forward log_sigmoid_backward glu
    glu_backward hardswish hardswish_backward hardsigmoid hardsigmoid_backward logit logit_backward
    logsumexp trace addr_never _weight_norm_interface_never dist logaddexp logaddexp2 rrelu_with_noise
    linspace_never xlogy special_entr unfold_backward_never
    frobenius_norm
"""
"""Without their overloads."""

for _name in NAMES.split():
    _packet = getattr(torch.ops.aten, _name, None)
    for _kind in _packet.overloads() if _packet is not None else ():
        _full = _name if _kind == "default" else f"{_name}.{_kind}"
        _function = decomposition_table.get(getattr(_packet, _kind))
        if _function is not None and _full not in definitions and not _kind.endswith("out"):
            compose(_full)(_function)
