"""Arguments of TensorFlow's raw operations, by kind of signature; what numbers of elements take needs none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from programs.fuzz.tensorflow_draws import Draw

Arguments = Callable[[Draw], dict[str, Any]]
TABLE: dict[str, Arguments] = {}
"""The arguments of an operation by its name."""


def arguments(names: str, of: Arguments) -> None:
    for name in names.split():
        assert name not in TABLE, name
        TABLE[name] = of


# --- reductions and scans ---------------------------------------------------------------------------------------------

AXES = {"float32": [1], "float64": [0, 2], "bfloat16": [0, 1, 2], "float16": [-1]}
arguments(
    "Sum Mean Prod Max Min EuclideanNorm",
    lambda d: {"input": d(5, 37, 6), "axis": AXES[d.dtype], "keep_dims": d.dtype == "float64"},
)
arguments("ArgMax ArgMin", lambda d: {"input": d(5, 37), "dimension": 1})
arguments("Cumsum Cumprod CumulativeLogsumexp", lambda d: {"x": d(5, 37), "axis": 1, "exclusive": d.dtype != "float32"})
arguments("Softmax LogSoftmax", lambda d: {"logits": d(5, 37)})
arguments("SoftmaxCrossEntropyWithLogits", lambda d: {"features": d(5, 7), "labels": d.unit(5, 7)})
arguments("SparseSoftmaxCrossEntropyWithLogits", lambda d: {"features": d(5, 7), "labels": d.integers(0, 7, 5)})
arguments("TopK", lambda d: {"input": d(5, 37), "k": 4})
arguments("TopKV2", lambda d: {"input": d(5, 37), "k": 4})
arguments("NthElement", lambda d: {"input": d(5, 37), "n": 4})
arguments("InTopK", lambda d: {"predictions": d.singles(5, 7), "targets": d.integers(0, 7, 5), "k": 3})
arguments("InTopKV2", lambda d: {"predictions": d.singles(5, 7), "targets": d.integers(0, 7, 5), "k": 3})
arguments("AddN", lambda d: {"inputs": [d(5, 7) for _ in range(4)]})
arguments("AccumulateNV2", lambda d: {"inputs": [d(5, 7) for _ in range(4)], "shape": [5, 7]})
arguments("BiasAddGrad", lambda d: {"out_backprop": d(5, 37, 6)})
arguments("BiasAdd BiasAddV1", lambda d: {"value": d(5, 7, 6), "bias": d(6)})
arguments("UniqueV2 UniqueWithCountsV2", lambda d: {"x": d(9), "axis": [0]})
arguments("Unique UniqueWithCounts", lambda d: {"x": d(9)})
arguments("ListDiff", lambda d: {"x": d(9), "y": d(4)})
arguments("Bucketize", lambda d: {"input": d.elements(), "boundaries": [-1.0, 0.1, 2.0]})
arguments("LowerBound UpperBound", lambda d: {"sorted_inputs": tf.sort(d(3, 9), 1), "values": d(3, 4)})
arguments("ClipByValue", lambda d: {"t": d.elements(), "clip_value_min": -d.unit(), "clip_value_max": d.unit()})
arguments("Select", lambda d: {"condition": d.integers(0, 2, 7, dtype=bool), "x": d(7), "y": d(7)})
arguments("SelectV2", lambda d: {"condition": d.integers(0, 2, 7, dtype=bool), "t": d(5, 7), "e": d(7)})
arguments("Range", lambda d: {"start": -d.unit(), "limit": 9 + d.unit(), "delta": 0.1 + d.unit()})
arguments("RaggedRange", lambda d: {"starts": -d.unit(3), "limits": 9 + d.unit(3), "deltas": 0.1 + d.unit(3)})
arguments("LinSpace", lambda d: {"start": d(), "stop": d(), "num": 9})
arguments("Cast", lambda d: {"x": d.elements(), "DstT": [tf.int8, tf.int32, tf.uint16, tf.float16][d.integers(0, 4)]})
arguments("Einsum", lambda d: {"inputs": [d(3, 4, 5), d(3, 5, 6)], "equation": "bij,bjk->kbi"})
arguments("Betainc", lambda d: {"a": d.positive(7), "b": d.positive(7), "x": d.unit(7)})


# --- matrices ---------------------------------------------------------------------------------------------------------

arguments("MatMul", lambda d: {"a": d(37, 9), "b": d(6, 37), "transpose_a": True, "transpose_b": True})
arguments("BatchMatMul BatchMatMulV2 BatchMatMulV3", lambda d: {"x": d(3, 7, 19), "y": d(3, 19, 4)})
arguments("SparseMatMul", lambda d: {"a": d(7, 19), "b": d(19, 4)})
arguments("Cholesky MatrixInverse MatrixDeterminant LogMatrixDeterminant", lambda d: {"input": d.definite(3, 5, 5)})
arguments("Qr Lu Svd Eig SelfAdjointEig SelfAdjointEigV2", lambda d: {"input": d.definite(3, 5, 5)})
arguments("MatrixExponential MatrixSquareRoot", lambda d: {"input": d.definite(3, 5, 5)})
arguments("CholeskyGrad", lambda d: {"l": d.definite(3, 5, 5), "grad": d(3, 5, 5)})
arguments("MatrixSolve MatrixTriangularSolve", lambda d: {"matrix": d.definite(3, 5, 5), "rhs": d(3, 5, 2)})
arguments("MatrixSolveLs", lambda d: {"matrix": d(3, 5, 4), "rhs": d(3, 5, 2), "l2_regularizer": 0.5})
arguments("BandedTriangularSolve", lambda d: {"matrix": 1 + d.unit(2, 5), "rhs": d(5, 2)})
arguments("TridiagonalSolve", lambda d: {"diagonals": 1 + d.unit(3, 5), "rhs": d(5, 2)})
arguments("MatrixBandPart", lambda d: {"input": d(3, 5, 5), "num_lower": 1, "num_upper": 2})
arguments("MatrixDiag Diag", lambda d: {"diagonal": d(3, 5)})
arguments("MatrixDiagPart", lambda d: {"input": d(3, 5, 5)})
arguments("DiagPart", lambda d: {"input": d(3, 4, 3, 4)})
arguments("MatrixDiagPartV2 MatrixDiagPartV3", lambda d: {"input": d(3, 5, 5), "k": 1, "padding_value": d()})
arguments(
    "MatrixDiagV2 MatrixDiagV3",
    lambda d: {"diagonal": d(3, 5), "k": 1, "num_rows": 6, "num_cols": 6, "padding_value": d()},
)
arguments("MatrixSetDiag", lambda d: {"input": d(3, 5, 5), "diagonal": d(3, 5)})
arguments("MatrixSetDiagV2 MatrixSetDiagV3", lambda d: {"input": d(3, 5, 5), "diagonal": d(3, 4), "k": 1})
arguments("Cross", lambda d: {"a": d(5, 3), "b": d(5, 3)})
arguments(
    "TridiagonalMatMul",
    lambda d: {"superdiag": d(2, 1, 5), "maindiag": d(2, 1, 5), "subdiag": d(2, 1, 5), "rhs": d(2, 5, 3)},
)

# --- quantization -----------------------------------------------------------------------------------------------------

arguments("FakeQuantWithMinMaxArgs", lambda d: {"inputs": d.singles(5, 7), "min": -2.5, "max": 1.5})
arguments(
    "FakeQuantWithMinMaxArgsGradient",
    lambda d: {"gradients": d.singles(5, 7), "inputs": d.singles(5, 7), "min": -2.5, "max": 1.5},
)
arguments("FakeQuantWithMinMaxVars", lambda d: {"inputs": d.singles(5, 7), "min": -2.5, "max": 1.5})
arguments(
    "FakeQuantWithMinMaxVarsGradient",
    lambda d: {"gradients": d.singles(5, 7), "inputs": d.singles(5, 7), "min": -2.5, "max": 1.5},
)
CHANNELS = {"min": [-2.5, -1.0, 0.0], "max": [1.5, 0.0, 3.0]}
arguments("FakeQuantWithMinMaxVarsPerChannel", lambda d: {"inputs": d.singles(5, 7, 3), **CHANNELS})
arguments(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    lambda d: {"gradients": d.singles(5, 7, 3), "inputs": d.singles(5, 7, 3), **CHANNELS},
)
arguments(
    "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4",
    lambda d: {"input": d(5, 7), **_ends(d), "num_bits": 8, "range_given": d.dtype == "float32"},
)
arguments("QuantizeAndDequantizeV4Grad", lambda d: {"gradients": d(5, 7), "input": d(5, 7), **_ends(d)})

# --- images, convolutions, pools --------------------------------------------------------------------------------------

PLANE = {"strides": [1, 2, 2, 1], "padding": "SAME"}
VOLUME = {"strides": [1, 1, 2, 1, 1], "padding": "VALID"}
POOL, POOL3D = {"ksize": [1, 3, 3, 1], **PLANE}, {"ksize": [1, 2, 3, 2, 1], **VOLUME}
arguments("Conv2D", lambda d: {"input": d(2, 9, 8, 3), "filter": d(3, 3, 3, 4), **PLANE})
arguments("Conv2DBackpropInput", lambda d: _sizes([2, 9, 8, 3]) | {"filter": d(3, 3, 3, 4)} | _gradient(d, 4) | PLANE)
arguments(
    "Conv2DBackpropFilter",
    lambda d: {"input": d(2, 9, 8, 3), "filter_sizes": [3, 3, 3, 4]} | _gradient(d, 4) | PLANE,
)
arguments("DepthwiseConv2dNative", lambda d: {"input": d(2, 9, 8, 3), "filter": d(3, 3, 3, 2), **PLANE})
arguments(
    "DepthwiseConv2dNativeBackpropInput",
    lambda d: _sizes([2, 9, 8, 3]) | {"filter": d(3, 3, 3, 2)} | _gradient(d, 6) | PLANE,
)
arguments(
    "DepthwiseConv2dNativeBackpropFilter",
    lambda d: {"input": d(2, 9, 8, 3), "filter_sizes": [3, 3, 3, 2]} | _gradient(d, 6) | PLANE,
)
arguments("Conv3D", lambda d: {"input": d(2, 4, 7, 5, 3), "filter": d(2, 3, 2, 3, 4), **VOLUME})
arguments(
    "Conv3DBackpropInputV2",
    lambda d: _sizes([2, 4, 7, 5, 3]) | {"filter": d(2, 3, 2, 3, 4), "out_backprop": d(2, 3, 3, 4, 4), **VOLUME},
)
arguments(
    "Conv3DBackpropFilterV2",
    lambda d: {"input": d(2, 4, 7, 5, 3), "filter_sizes": [2, 3, 2, 3, 4], "out_backprop": d(2, 3, 3, 4, 4), **VOLUME},
)
arguments("AvgPool", lambda d: {"value": d(2, 9, 8, 3), **POOL})
arguments("MaxPool", lambda d: {"input": d(2, 9, 8, 3), **POOL})
arguments("MaxPoolWithArgmax", lambda d: {"input": d(2, 9, 8, 3), **POOL})
arguments("AvgPool3D MaxPool3D", lambda d: {"input": d(2, 4, 7, 5, 3), **POOL3D})
arguments("AvgPoolGrad", lambda d: {"orig_input_shape": [2, 9, 8, 3], "grad": d(2, 5, 4, 3), **POOL})
arguments("AvgPool3DGrad", lambda d: {"orig_input_shape": [2, 4, 7, 5, 3], "grad": d(2, 3, 3, 4, 3), **POOL3D})
arguments("MaxPoolV2", lambda d: {"input": d(2, 9, 8, 3), **POOL})
arguments("MaxPoolGrad MaxPoolGradV2", lambda d: _pooled(d, d(2, 5, 4, 3)))
arguments("MaxPoolGradGrad MaxPoolGradGradV2", lambda d: _pooled(d, d(2, 9, 8, 3)))
arguments("MaxPool3DGrad MaxPool3DGradGrad", lambda d: _pooled3d(d))
arguments("MaxPoolGradWithArgmax", lambda d: _pooled_with_places(d))
arguments("LRN", lambda d: {"input": d(2, 5, 4, 9), "depth_radius": 2, "alpha": 0.5, "beta": 0.75})
arguments(
    "LRNGrad",
    lambda d: {"input_grads": d(2, 3, 2, 9), "input_image": d(2, 3, 2, 9), "output_image": d(2, 3, 2, 9), "beta": 0.75},
)
RATES = {"rates": [1, 1, 1, 1], **PLANE}
arguments("Dilation2D", lambda d: {"input": d(2, 9, 8, 3), "filter": d(3, 3, 3), **RATES})
arguments(
    "Dilation2DBackpropInput Dilation2DBackpropFilter",
    lambda d: {"input": d(2, 9, 8, 3), "filter": d(3, 3, 3), "out_backprop": d(2, 5, 4, 3), **RATES},
)
RATIOS = {"pooling_ratio": [1.0, 1.44, 1.73, 1.0], "deterministic": True, "seed": 3, "seed2": 4}
arguments("FractionalAvgPool FractionalMaxPool", lambda d: {"value": d(2, 9, 8, 3), **RATIOS})
PATCHES = {"strides": [1, 2, 2, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
arguments("ExtractImagePatches", lambda d: {"images": d(2, 9, 8, 3), "ksizes": [1, 3, 3, 1], **PATCHES})
arguments("ExtractVolumePatches", lambda d: {"input": d(2, 4, 7, 5, 3), "ksizes": [1, 2, 3, 2, 1], **VOLUME})
arguments("ResizeBilinear ResizeBicubic ResizeNearestNeighbor ResizeArea", lambda d: _resized(d))
arguments(
    "ResizeBilinearGrad ResizeBicubicGrad", lambda d: {"grads": d.singles(2, 5, 9, 3), "original_image": d(2, 9, 8, 3)}
)
arguments("ResizeNearestNeighborGrad", lambda d: {"grads": d(2, 5, 9, 3), "size": [9, 8]})
arguments("CropAndResize", lambda d: {"image": d(2, 9, 8, 3), **_boxes(d), "crop_size": [4, 5]})
arguments(
    "CropAndResizeGradImage",
    lambda d: {"grads": d.singles(3, 4, 5, 3), **_boxes(d), "image_size": [2, 9, 8, 3], "T": tf.as_dtype(d.dtype)},
)
arguments("CropAndResizeGradBoxes", lambda d: {"grads": d.singles(3, 4, 5, 3), "image": d(2, 9, 8, 3), **_boxes(d)})
MOVED = {"scale": [0.6, 1.1], "translation": [0.5, -0.25]}
arguments("ScaleAndTranslate", lambda d: {"images": d(2, 9, 8, 3), "size": [5, 9], **MOVED, "kernel_type": "lanczos3"})
arguments(
    "ScaleAndTranslateGrad",
    lambda d: {"grads": d.singles(2, 5, 9, 3), "original_image": d.singles(2, 9, 8, 3), **MOVED},
)
arguments("ImageProjectiveTransformV2 ImageProjectiveTransformV3", lambda d: _projected(d))
arguments("AdjustContrastv2", lambda d: {"images": d.unit(2, 5, 4, 3), "contrast_factor": 1.5})
arguments("AdjustSaturation", lambda d: {"images": d.unit(2, 5, 4, 3), "scale": 1.5})
arguments("AdjustHue", lambda d: {"images": d.unit(2, 5, 4, 3), "delta": 0.25})
arguments("RGBToHSV HSVToRGB", lambda d: {"images": d.unit(2, 5, 4, 3)})
arguments("DrawBoundingBoxes", lambda d: {"images": d(2, 9, 8, 3), "boxes": tf.sort(d.singles(2, 3, 4))})


def _sizes(shape: list[int]) -> dict[str, Any]:
    return {"input_sizes": shape}


def _gradient(d: Draw, channels: int) -> dict[str, Any]:
    return {"out_backprop": d(2, 5, 4, channels)}


def _pooled(d: Draw, gradient: Any) -> dict[str, Any]:
    x = d(2, 9, 8, 3)
    return {"orig_input": x, "orig_output": tf.raw_ops.MaxPool(input=x, **POOL), "grad": gradient, **POOL}


def _pooled3d(d: Draw) -> dict[str, Any]:
    x = d(2, 4, 7, 5, 3)
    y = tf.raw_ops.MaxPool3D(input=x, **POOL3D)
    return {"orig_input": x, "orig_output": y, "grad": d(2, 3, 3, 4, 3), **POOL3D}


def _pooled_with_places(d: Draw) -> dict[str, Any]:
    places = np.arange(60).reshape(5, 4, 3) * 3 % 216
    return {"input": d(2, 9, 8, 3), "grad": d(2, 5, 4, 3), "argmax": np.stack([places, places]), **POOL}


def _resized(d: Draw) -> dict[str, Any]:
    return {"images": d(2, 9, 8, 3), "size": [5, 13], "half_pixel_centers": True}


def _ends(d: Draw) -> dict[str, Any]:
    """The ends of a range."""
    return {"input_min": d.tensor(np.array(-2.5)), "input_max": d.tensor(np.array(1.5))}


def _boxes(d: Draw) -> dict[str, Any]:
    return {"boxes": d.singles(3, 4) * 0.25 + [0.0, 0.0, 1.0, 1.0], "box_ind": [0, 1, 0]}


def _projected(d: Draw) -> dict[str, Any]:
    move = d.singles(2, 8) * 0.05 + [1.0, 0.1, 0.2, 0.0, 1.0, 0.3, 0.0, 0.0]
    return {"images": d(2, 9, 8, 3), "transforms": move, "output_shape": [7, 8], "interpolation": "BILINEAR"}
