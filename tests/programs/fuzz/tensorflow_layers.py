"""Calls of Keras' layers: what they give, and the gradients with respect to their inputs and weights."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from programs.fuzz.cases import Case
from programs.fuzz.tensorflow_draws import KINDS, TYPES, Draw, arrays, gradients, results

ROWS, SERIES, IMAGE, VOLUME = (5, 37), (4, 11, 16), (2, 9, 8, 4), (2, 5, 6, 7, 4)
CALLS: dict[str, tuple[Callable[[Any], Any], tuple[tuple[int, ...], ...]]] = {
    "Dense": (lambda t: layers.Dense(7, "gelu", dtype=t), (ROWS,)),
    "EinsumDense": (lambda t: layers.EinsumDense("abc,cd->abd", (None, 7), dtype=t), (SERIES,)),
    "LSTM": (lambda t: layers.LSTM(8, dtype=t), (SERIES,)),
    "GRU": (lambda t: layers.GRU(8, return_sequences=True, dtype=t), (SERIES,)),
    "SimpleRNN": (lambda t: layers.SimpleRNN(8, unroll=True, dtype=t), (SERIES,)),
    "Bidirectional": (lambda t: layers.Bidirectional(layers.LSTM(8, dtype=t), dtype=t), (SERIES,)),
    "ConvLSTM1D": (lambda t: layers.ConvLSTM1D(4, 3, dtype=t), ((2, 3, 8, 2),)),
    "Conv1D": (lambda t: layers.Conv1D(8, 3, padding="causal", dtype=t), (SERIES,)),
    "Conv2D": (lambda t: layers.Conv2D(8, 3, 2, "same", groups=2, dtype=t), (IMAGE,)),
    "Conv3D": (lambda t: layers.Conv3D(8, 2, dtype=t), (VOLUME,)),
    "Conv1DTranspose": (lambda t: layers.Conv1DTranspose(8, 3, 2, dtype=t), (SERIES,)),
    "Conv2DTranspose": (lambda t: layers.Conv2DTranspose(8, 3, 2, output_padding=1, dtype=t), (IMAGE,)),
    "Conv3DTranspose": (lambda t: layers.Conv3DTranspose(2, 2, 2, dtype=t), (VOLUME,)),
    "Conv2D dilated": (lambda t: layers.Conv2D(8, 3, dilation_rate=2, dtype=t), (IMAGE,)),
    "DepthwiseConv1D": (lambda t: layers.DepthwiseConv1D(3, dtype=t), (SERIES,)),
    "DepthwiseConv2D": (lambda t: layers.DepthwiseConv2D(3, 2, "same", 2, dtype=t), (IMAGE,)),
    "SeparableConv1D": (lambda t: layers.SeparableConv1D(8, 3, dtype=t), (SERIES,)),
    "SeparableConv2D": (lambda t: layers.SeparableConv2D(8, 3, dtype=t), (IMAGE,)),
    "BatchNormalization": (lambda t: training(layers.BatchNormalization(dtype=t)), (IMAGE,)),
    "LayerNormalization": (lambda t: layers.LayerNormalization(dtype=t), (SERIES,)),
    "LayerNormalization of two axes": (lambda t: layers.LayerNormalization(axis=[1, 2], dtype=t), (SERIES,)),
    "RMSNormalization": (lambda t: layers.RMSNormalization(dtype=t), (SERIES,)),
    "GroupNormalization": (lambda t: layers.GroupNormalization(2, dtype=t), (IMAGE,)),
    "UnitNormalization": (lambda t: layers.UnitNormalization(dtype=t), (SERIES,)),
    "SpectralNormalization": (
        lambda t: training(layers.SpectralNormalization(layers.Dense(4, dtype=t), dtype=t)),
        (ROWS,),
    ),
    "MultiHeadAttention": (lambda t: layers.MultiHeadAttention(2, 8, use_bias=False, dtype=t), (SERIES, SERIES)),
    "GroupQueryAttention": (lambda t: layers.GroupQueryAttention(8, 4, 2, use_bias=False, dtype=t), (SERIES, SERIES)),
    "Attention": (lambda t: listed(layers.Attention(use_scale=True, dtype=t)), (SERIES, SERIES)),
    "AdditiveAttention": (lambda t: listed(layers.AdditiveAttention(dtype=t)), (SERIES, SERIES)),
    "Dot": (lambda t: listed(layers.Dot(2, dtype=t)), (SERIES, SERIES)),
    "Average": (lambda t: listed(layers.Average(dtype=t)), (SERIES, SERIES)),
    "Multiply": (lambda t: listed(layers.Multiply(dtype=t)), (SERIES, SERIES)),
    "PReLU": (lambda t: layers.PReLU(dtype=t), (ROWS,)),
    "ELU": (lambda t: layers.ELU(dtype=t), (ROWS,)),
    "Softmax": (lambda t: layers.Softmax(dtype=t), (ROWS,)),
    "AveragePooling1D": (lambda t: layers.AveragePooling1D(3, 2, "same", dtype=t), (SERIES,)),
    "AveragePooling2D": (lambda t: layers.AveragePooling2D(3, 2, "same", dtype=t), (IMAGE,)),
    "AveragePooling3D": (lambda t: layers.AveragePooling3D(2, dtype=t), (VOLUME,)),
    "MaxPooling2D": (lambda t: layers.MaxPooling2D(3, 2, "same", dtype=t), (IMAGE,)),
    "MaxPooling3D": (lambda t: layers.MaxPooling3D(2, dtype=t), (VOLUME,)),
    "GlobalAveragePooling2D": (lambda t: layers.GlobalAveragePooling2D(dtype=t), (IMAGE,)),
    "GlobalMaxPooling2D": (lambda t: layers.GlobalMaxPooling2D(dtype=t), (IMAGE,)),
    "UpSampling2D": (lambda t: layers.UpSampling2D(2, interpolation="bilinear", dtype=t), (IMAGE,)),
    "ZeroPadding2D": (lambda t: layers.ZeroPadding2D(2, dtype=t), (IMAGE,)),
    "Resizing": (lambda t: layers.Resizing(7, 12, dtype=t), (IMAGE,)),
    "Rescaling": (lambda t: layers.Rescaling(1 / 255.0, 0.5, dtype=t), (IMAGE,)),
    "Normalization": (lambda t: layers.Normalization(mean=0.25, variance=2.0, dtype=t), (ROWS,)),
    "Discretization": (lambda t: layers.Discretization([-1.0, 0.5], dtype=t), (ROWS,)),
    "Dropout": (lambda t: training(layers.Dropout(0.25, seed=1, dtype=t)), (ROWS,)),
    "GaussianNoise": (lambda t: training(layers.GaussianNoise(0.5, seed=1, dtype=t)), (ROWS,)),
    "RandomRotation": (lambda t: training(layers.RandomRotation(0.1, seed=1, dtype=t)), (IMAGE,)),
    "RandomZoom": (lambda t: training(layers.RandomZoom(0.1, seed=1, dtype=t)), (IMAGE,)),
    "RandomContrast": (lambda t: training(layers.RandomContrast(0.1, seed=1, dtype=t)), (IMAGE,)),
    "RandomTranslation": (lambda t: training(layers.RandomTranslation(0.1, 0.1, seed=1, dtype=t)), (IMAGE,)),
    "MelSpectrogram": (lambda t: layers.MelSpectrogram(dtype=t), ((1, 2500),)),
}
"""A layer of a type, and the shapes of its inputs, by name."""


def training(layer: Any) -> Any:
    layer.fuzz = lambda *inputs: layer(*inputs, training=True)
    return layer


def listed(layer: Any) -> Any:
    layer.fuzz = lambda *inputs: layer(list(inputs))
    return layer


SAMPLES = [("plain", each) for each in TYPES] + [
    ("graph", "float32"),
    ("special", "float32"),
    ("huge", "bfloat16"),
    ("tiny", "float16"),
]


def cases(everything: bool) -> Iterator[Case]:
    """All samples, or one by turns."""
    turns = cycle(SAMPLES)
    for name in CALLS:
        for kind, dtype in SAMPLES if everything else [next(turns)]:
            for way, what in {"": results, " gradients": gradients}.items():
                if what is results or kind in ("plain", "graph"):
                    compute = partial(_computed, name, kind, dtype, what)
                    yield Case(f"keras.layers.{name}", f"{dtype} {kind}{way}", compute)


def _computed(name: str, kind: str, dtype: str, what: Callable[..., Any], double: bool) -> list[np.ndarray]:
    keras.utils.set_random_seed(1)
    draw = Draw(name, dtype, kind if kind in KINDS else "plain", double)
    build, shapes = CALLS[name]
    inputs = [draw(*shape) for shape in shapes]
    layer = build("float64" if double else dtype)
    function = getattr(layer, "fuzz", layer)
    function(*inputs)
    weights = Draw(name, dtype, "plain", double)
    for each in layer.variables:
        if each.dtype.startswith(("float", "bfloat")):
            each.assign(tf.abs(weights(*each.shape)) * 0.25 if "variance" in each.path else weights(*each.shape) * 0.25)
    return arrays(what(function, inputs, kind == "graph"))
