"""What convolutions would cost whose results depend on a patch alone, beside those of portable numerics.

    .venv/pytorch/bin/python -m benchmarks.patches_pytorch

prints a row for each shape: milliseconds of processor time now, forward and with gradients, then how many times as long
two prototypes take. `patch` has a grid for each patch: patches are made rows of a product. `taps` has a grid for each
position: a product for each tap of the kernel, added in a fixed order.
"""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

import repro.portable.pytorch as portable

RUNS, WARM_UP = 9, 4
Convolution = Callable[[Tensor, Tensor], Tensor]


def patch1d(x: Tensor, weight: Tensor) -> Tensor:
    """[B, I, T], [O, I, k] -> [B, O, T - k + 1]."""
    rows = x.unfold(2, weight.shape[2], 1).transpose(1, 2).flatten(2)
    return functional.linear(rows, weight.flatten(1)).transpose(1, 2)


def taps1d(x: Tensor, weight: Tensor) -> Tensor:
    length, rows = x.shape[2] - weight.shape[2] + 1, x.transpose(1, 2).contiguous()
    taps = enumerate(weight.unbind(2))
    first, *others = (functional.linear(rows[:, at : at + length], tap) for at, tap in taps)
    return sum(others, first).transpose(1, 2)


def patch2d(x: Tensor, weight: Tensor) -> Tensor:
    """[B, I, H, W], [O, I, 3, 3] -> [B, O, H, W]."""
    rows = functional.unfold(x, 3, padding=1).transpose(1, 2)
    return functional.linear(rows, weight.flatten(1)).transpose(1, 2).unflatten(2, x.shape[2:])


def taps2d(x: Tensor, weight: Tensor) -> Tensor:
    height, width = x.shape[2:]
    rows = functional.pad(x, (1, 1, 1, 1)).permute(0, 2, 3, 1).contiguous()
    parts = [
        functional.linear(rows[:, i : i + height, j : j + width], weight[:, :, i, j])
        for i in range(3)
        for j in range(3)
    ]
    return sum(parts[1:], parts[0]).permute(0, 3, 1, 2)


SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "conv1d, kernel 3": ((8, 64, 200), (64, 64, 3)),
    "conv1d, kernel 5": ((8, 64, 200), (64, 64, 5)),
    "conv1d, kernel 10": ((8, 64, 200), (64, 64, 10)),
    "conv1d, kernel 10, one channel": ((2, 1, 2000), (256, 1, 10)),
    "conv2d, 3 x 3, 32 channels": ((8, 32, 32, 32), (32, 32, 3, 3)),
    "conv2d, 3 x 3, 128 channels": ((8, 128, 8, 8), (128, 128, 3, 3)),
}


def milliseconds(function: Callable[[], object]) -> float:
    """The shortest of several runs."""
    times = []
    for _ in range(WARM_UP + RUNS):
        begin = time.thread_time()
        function()
        times.append(time.thread_time() - begin)
    return min(times[WARM_UP:]) * 1e3


def forward(function: Convolution, x: Tensor, weight: Tensor) -> None:
    with torch.no_grad():
        function(x, weight)


def both(function: Convolution, x: Tensor, weight: Tensor) -> None:
    leaves = x.clone().requires_grad_(), weight.clone().requires_grad_()
    function(*leaves).sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    portable.enable()
    for name, shapes in SHAPES.items():
        given = [torch.randn(shape) for shape in shapes]
        plane = len(shapes[0]) == 4
        now = partial(functional.conv2d, padding=1) if plane else functional.conv1d
        base = [milliseconds(partial(run, now, *given)) for run in (forward, both)]
        row = f"{name:32}{base[0]:6.2f} {base[1]:6.2f} ms"
        for title, other in (
            {"patch": patch2d, "taps": taps2d}.items() if plane else {"patch": patch1d, "taps": taps1d}.items()
        ):
            assert torch.allclose(other(*given), now(*given), rtol=0, atol=1e-2 * float(now(*given).abs().max()))
            times = [milliseconds(partial(run, other, *given)) for run in (forward, both)]
            row += f"   {title} {times[0] / base[0]:5.2f} {times[1] / base[1]:5.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
