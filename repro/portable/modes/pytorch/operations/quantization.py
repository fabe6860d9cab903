"""Numbers rounded to those of a few bits, as for a training that knows it will be quantized; each operation rounded by itself."""

import torch
from torch import Tensor

from repro.portable.modes.pytorch.dispatcher.tables import define

SMALLEST = 6.1e-5
"""The least step, as PyTorch has it."""


def _quantized(x: Tensor, step: Tensor, zero: Tensor, low: int, high: int, whole: bool = True) -> tuple[Tensor, Tensor]:
    """The nearest numbers that are whole steps, and which of them lie between `low` and `high`. Zeros of float32 may be none."""
    steps = x * step.reciprocal()
    place = zero + steps.round() if whole else (zero + steps).round()
    return ((place.clamp(low, high) - zero) * step).to(x.dtype), (place >= low) & (place <= high)


@define("fake_quantize_per_tensor_affine_cachemask")
def per_tensor(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    step, zero = (torch.tensor(float(each), dtype=torch.float32, device=self.device) for each in (scale, zero_point))
    return _quantized(self, step, zero, quant_min, quant_max)


@define("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def per_tensor_by_tensors(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    values, inside = _quantized(self, scale.reshape(()), zero_point.reshape(()).float(), quant_min, quant_max)
    enabled = fake_quant_enabled.reshape(()) != 0
    return torch.where(enabled, values, self), inside | ~enabled


@define("fake_quantize_per_channel_affine_cachemask")
def per_channel(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    shape = [-1 if each == axis % self.dim() else 1 for each in range(self.dim())]
    zero, whole = zero_point.view(shape).to(scale.dtype), not zero_point.is_floating_point()
    return _quantized(self, scale.view(shape), zero, quant_min, quant_max, whole)


# --- of a range that follows the numbers ------------------------------------------------------------------------------


@define("_fused_moving_avg_obs_fq_helper")
def of_observed_range(
    self: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[Tensor, Tensor]:
    """Moves the range towards that of the numbers, chooses the grid by it, and rounds the numbers."""
    if observer_on.item():
        rows = self.movedim(ch_axis, 0).flatten(1) if per_row_fake_quant else self.reshape(1, -1)
        for running, seen in ((running_min, rows.amin(1)), (running_max, rows.amax(1))):
            if per_row_fake_quant:
                running.resize_(seen.shape)
            seen = seen.view(running.shape).to(running.dtype)
            moved = running + (seen - running) * averaging_const
            running.copy_(torch.where(running.isinf(), seen, moved))
    if not fake_quant_on.item():
        return self.clone(), torch.ones_like(self, dtype=torch.bool)
    for each in (scale, zero_point):
        if per_row_fake_quant:
            each.resize_(running_min.shape)
    step, zero = _grid(running_min, running_max, quant_min, quant_max, symmetric_quant)
    scale.copy_(step.view(scale.shape))
    zero_point.copy_(zero.view(zero_point.shape))
    if per_row_fake_quant:
        return per_channel(self, scale, zero_point, ch_axis, quant_min, quant_max)
    return _quantized(self, scale.reshape(()), zero_point.reshape(()).float(), quant_min, quant_max)


def _grid(low: Tensor, high: Tensor, first: int, last: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """The step, float64, and the integer that stands for 0, of a range that is widened to hold 0."""
    low, high = low.double(), high.double()

    def number(value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=low.device)

    balanced = (low < 0) & (high > 0) & symmetric
    half = (last - first) // 2
    both = torch.maximum((low / number(-half - 1)).float(), (high / number(half)).float()).double()
    low = torch.where(balanced, (both * (-half - 1)).float().double(), low).clamp(max=0.0)
    high = torch.where(balanced, (both * half).float().double(), high).clamp(min=0.0)
    step = (high - low) / number(last - first)
    step = torch.where((step.float() == 0) | step.float().reciprocal().isinf(), 0.1, step)
    small = step < SMALLEST
    wider = (number(SMALLEST).float() / step.float()).double()
    low = torch.where(small, torch.where(high == 0, -SMALLEST * (last - first), (low * wider).float().double()), low)
    high = torch.where(small, torch.where(low == 0, SMALLEST * (last - first), (high * wider).float().double()), high)
    step = torch.where(small, number(SMALLEST).float().double(), step)
    from_low, from_high = first - low / step, last - high / step
    nearer = abs(first) + (low / step).abs() < abs(last) + (high / step).abs()
    zero = torch.where(nearer, from_low, from_high)
    zero = torch.where(balanced, (first + last) * 0.5, zero)
    return step, zero.round().clamp(first, last)
