"""Layers of mnist_pytorch.py, fast on a CPU.

Images are [B, C, H, W] and kernels [O, I, h, w]. The convolution is PyTorch's own, made quick on CPUs with AVX2 but no
AVX-512. Its counterparts are repro/trainers/native/tensorflow/layers.py and repro/trainers/native/jax/layers.py.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional


class ConvWithOwnBias(torch.autograd.Function):
    """Valid convolution with bias: [B, I, H, W], [O, I, h, w] and [O] -> [B, O, H - h + 1, W - w + 1].

    The gradient of the bias is a sum of its own. oneDNN would find it together with the kernel's, but its kernels for
    AVX2 are slow at that, and slower with two threads than with one.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, kernel)
        return functional.conv2d(x, kernel, bias)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, kernel = ctx.saved_tensors
        grad_x, grad_kernel, _ = torch.ops.aten.convolution_backward.default(
            gradient,
            x,
            kernel,
            bias_sizes=None,
            stride=(1, 1),
            padding=(0, 0),
            dilation=(1, 1),
            transposed=False,
            output_padding=(0, 0),
            groups=1,
            output_mask=(ctx.needs_input_grad[0], True, False),
        )
        return grad_x, grad_kernel, gradient.sum((0, 2, 3))


# With AVX-512, oneDNN's own way is the quick one.
conv = ConvWithOwnBias.apply if torch.backends.cpu.get_cpu_capability() == "AVX2" else functional.conv2d
