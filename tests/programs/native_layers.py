"""A framework's fast layers: results and gradients, for each file of arrays in a folder.

python native_layers.py FRAMEWORK FOLDER, with FOLDER/NAME.given -> FOLDER/NAME.computed
Images are [B, H, W, C] and kernels [h, w, I, O].
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

Arrays = dict[str, np.ndarray]


def pytorch(given: Arrays) -> Arrays:
    import torch

    from repro.trainers.native.pytorch.layers import ConvWithOwnBias

    x, kernel, bias, gradient = (torch.from_numpy(given[name]) for name in ("x", "kernel", "bias", "gradient"))
    operands = [x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), bias]
    for operand in operands:
        operand.requires_grad_()
    y = ConvWithOwnBias.apply(*operands)
    grad_x, grad_kernel, grad_bias = torch.autograd.grad(y, operands, gradient.permute(0, 3, 1, 2))
    results = [y.permute(0, 2, 3, 1), grad_x.permute(0, 2, 3, 1), grad_kernel.permute(2, 3, 1, 0), grad_bias]
    return named([array.detach() for array in results])


def tensorflow(given: Arrays) -> Arrays:
    import tensorflow as tf

    from repro.trainers.native.tensorflow.layers import conv, max_pool

    @tf.function(jit_compile=True)
    def with_gradients(function: Callable, operands: list, gradient: tf.Tensor) -> list:
        with tf.GradientTape() as tape:
            tape.watch(operands)
            y = function(*operands)
        return [y, *tape.gradient(y, operands, gradient)]

    def differentiated(function: Callable, gradient: str, *names: str) -> list:
        operands = [tf.constant(given[name]) for name in names]
        return with_gradients(function, operands, tf.constant(given[gradient]))

    return named(differentiated(conv, "gradient", "x", "kernel", "bias"), differentiated(max_pool, "pooled", "image"))


def jax(given: Arrays) -> Arrays:
    import jax

    from repro.trainers.native.jax.layers import conv, max_pool

    def differentiated(function: Callable, gradient: str, *names: str) -> list:
        def grad_images(images, *others):  # the batch is the last axis within
            return function(images.transpose(3, 1, 2, 0), *others).transpose(3, 1, 2, 0)

        y, backward = jax.vjp(jax.jit(grad_images), *(given[name] for name in names))
        return [y, *backward(given[gradient])]

    return named(differentiated(conv, "gradient", "x", "kernel", "bias"), differentiated(max_pool, "pooled", "image"))


def named(convolved: list, pooled: Sequence = ()) -> Arrays:
    names = ("y", "grad_x", "grad_kernel", "grad_bias", "pool", "grad_image")
    return {name: np.asarray(array) for name, array in zip(names, [*convolved, *pooled], strict=False)}


layers = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax}[sys.argv[1]]
for path in Path(sys.argv[2]).glob("*.given"):
    save_file({name: array.copy() for name, array in layers(load_file(path)).items()}, path.with_suffix(".computed"))
