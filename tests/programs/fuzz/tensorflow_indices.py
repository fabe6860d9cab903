"""Arguments of TensorFlow's raw operations that move numbers, add them at indices, draw them, or change variables."""

from typing import Any

import numpy as np
import tensorflow as tf

from programs.fuzz.tensorflow_arguments import arguments
from programs.fuzz.tensorflow_draws import Draw

# --- normalization ----------------------------------------------------------------------------------------------------


def _normalized(d: Draw) -> dict[str, Any]:
    variables = d if d.dtype in ("float32", "float64") else Draw("statistics", double=d.double)
    empty = variables.tensor(np.zeros(0))
    statistics = [empty, empty] if d.dtype != "bfloat16" else [variables(3), variables.positive(3)]
    names = dict(zip(("mean", "variance"), statistics, strict=True))
    x = {"x": d(4, 5, 6, 3), "scale": variables(3), "offset": variables(3)}
    return {**x, **names, "epsilon": 2.0**-10, "is_training": d.dtype != "bfloat16"}


def _normalized_gradient(d: Draw) -> dict[str, Any]:
    variables = d if d.dtype == "float32" else Draw("statistics", double=d.double)
    spaces = {"reserve_space_1": variables(3), "reserve_space_2": variables.positive(3)}
    values = {"y_backprop": d(4, 5, 6, 3), "x": d(4, 5, 6, 3), "scale": d.singles(3), **spaces}
    return {**values, "epsilon": 2.0**-10, "is_training": d.dtype != "bfloat16"}


arguments("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", _normalized)
arguments("FusedBatchNormGrad FusedBatchNormGradV2", _normalized_gradient)
arguments("FusedBatchNormGradV3", lambda d: _normalized_gradient(d) | {"reserve_space_3": d.singles(3)})
arguments("L2Loss", lambda d: {"t": d(5, 37)})

# --- segments, scatter, sparse ----------------------------------------------------------------------------------------

ROWS = [0, 0, 2, 2, 2, 3, 3]
MIXED = [2, 0, 2, 3, 0, 2, 3]
arguments("SegmentSum SegmentMean SegmentMax SegmentMin SegmentProd", lambda d: {"data": d(7, 5), "segment_ids": ROWS})
arguments("SegmentSumV2 SegmentMaxV2 SegmentMinV2 SegmentProdV2", lambda d: _segments(d, ROWS))
arguments("UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd", lambda d: _segments(d, MIXED))
for _how in ("Sum", "Mean", "SqrtN"):
    arguments(
        f"SparseSegment{_how}", lambda d: {"data": d(9, 5), "indices": [8, 1, 1, 0, 3, 8, 4], "segment_ids": ROWS}
    )
    arguments(
        f"SparseSegment{_how}WithNumSegments",
        lambda d: {"data": d(9, 5), "indices": [8, 1, 1, 0, 3, 8, 4], "segment_ids": ROWS, "num_segments": 6},
    )
    arguments(
        f"SparseSegment{_how}Grad",
        lambda d: {"grad": d(4, 5), "indices": [8, 1, 1, 0, 3, 8, 4], "segment_ids": ROWS, "output_dim0": 9},
    )
    arguments(
        f"SparseSegment{_how}GradV2",
        lambda d: {"grad": d(4, 5), "indices": [8, 1, 1, 0, 3, 8, 4], "segment_ids": ROWS, "dense_output_dim0": 9},
    )
arguments("Bincount", lambda d: {"arr": MIXED, "size": 4, "weights": d(7)})
arguments("DenseBincount", lambda d: {"input": MIXED, "size": 4, "weights": d(7)})
PLACES = [[1, 2], [0, 0], [1, 2]]
arguments("ScatterNd", lambda d: {"indices": PLACES, "updates": d(3, 4), "shape": [2, 3, 4]})
arguments(
    "TensorScatterAdd TensorScatterSub TensorScatterUpdate TensorScatterMax TensorScatterMin",
    lambda d: {"tensor": d(2, 3, 4), "indices": PLACES, "updates": d(3, 4)},
)
arguments("ScatterNdNonAliasingAdd", lambda d: {"input": d(2, 3, 4), "indices": PLACES, "updates": d(3, 4)})
arguments("DynamicPartition", lambda d: {"data": d(7, 5), "partitions": MIXED, "num_partitions": 4})
arguments("DynamicStitch ParallelDynamicStitch", lambda d: {"indices": [[0, 2], [1, 2]], "data": [d(2, 3), d(2, 3)]})
SPARSE = np.array([[0, 1], [1, 0], [1, 2], [3, 1]])
arguments(
    "SparseToDense", lambda d: _sparse("sparse_indices", "sparse_values", "output_shape", d) | {"default_value": d()}
)
arguments("SparseTensorDenseMatMul", lambda d: _sparse("a_indices", "a_values", "a_shape", d) | {"b": d(3, 5)})
arguments("SparseFillEmptyRows", lambda d: _sparse("indices", "values", "dense_shape", d) | {"default_value": d()})
arguments(
    "SparseReduceSum SparseReduceMax SparseReduceSumSparse SparseReduceMaxSparse",
    lambda d: _sparse("input_indices", "input_values", "input_shape", d) | {"reduction_axes": [1]},
)
arguments("SparseSoftmax", lambda d: _sparse("sp_indices", "sp_values", "sp_shape", d))
arguments("SparseReorder", lambda d: _sparse("input_indices", "input_values", "input_shape", d))
arguments(
    "SparseDenseCwiseAdd SparseDenseCwiseMul SparseDenseCwiseDiv",
    lambda d: _sparse("sp_indices", "sp_values", "sp_shape", d) | {"dense": d(4, 3)},
)
arguments("SparseTensorDenseAdd", lambda d: _sparse("a_indices", "a_values", "a_shape", d) | {"b": d(4, 3)})
arguments(
    "SparseSparseMaximum SparseSparseMinimum",
    lambda d: _sparse("a_indices", "a_values", "a_shape", d) | _sparse("b_indices", "b_values", "b_shape", d),
)
arguments(
    "SerializeSparse SerializeManySparse", lambda d: _sparse("sparse_indices", "sparse_values", "sparse_shape", d)
)
arguments(
    "EditDistance",
    lambda d: (
        _sparse("hypothesis_indices", "hypothesis_values", "hypothesis_shape", d)
        | _sparse("truth_indices", "truth_values", "truth_shape", d)
    ),
)


def _segments(d: Draw, ids: list[int]) -> dict[str, Any]:
    return {"data": d(7, 5), "segment_ids": ids, "num_segments": 5}


def _sparse(indices: str, values: str, shape: str, d: Draw) -> dict[str, Any]:
    return {indices: SPARSE, values: d(4), shape: np.array([4, 3])}


# --- numbers that are moved -------------------------------------------------------------------------------------------

arguments("BatchToSpace", lambda d: {"input": d(4, 2, 3, 1), "crops": [[0, 1], [1, 0]], "block_size": 2})
arguments("BatchToSpaceND", lambda d: {"input": d(4, 2, 3), "block_shape": [2], "crops": [[0, 1]]})
arguments("SpaceToBatch", lambda d: {"input": d(1, 3, 4, 2), "paddings": [[0, 1], [1, 1]], "block_size": 2})
arguments("SpaceToBatchND", lambda d: {"input": d(1, 3, 2), "block_shape": [2], "paddings": [[0, 1]]})
arguments("DepthToSpace", lambda d: {"input": d(1, 2, 3, 8), "block_size": 2})
arguments("SpaceToDepth", lambda d: {"input": d(1, 4, 6, 2), "block_size": 2})
arguments("BroadcastTo", lambda d: {"input": d(3, 1), "shape": [2, 3, 4]})
arguments("Concat", lambda d: {"concat_dim": 1, "values": [d(2, 3), d(2, 0), d(2, 4)]})
arguments("ConcatV2", lambda d: {"values": [d(2, 3), d(2, 0), d(2, 4)], "axis": -1})
arguments("ConjugateTranspose Transpose", lambda d: {"x": d(2, 3, 4), "perm": [2, 0, 1]})
arguments("EnsureShape PlaceholderWithDefault", lambda d: {"input": d(2, 3), "shape": [2, 3]})
arguments("ExpandDims", lambda d: {"input": d(2, 3), "axis": 1})
arguments("Fill", lambda d: {"dims": [2, 3], "value": d()})
arguments("Gather", lambda d: {"params": d(5, 3), "indices": MIXED})
arguments("GatherV2", lambda d: {"params": d(3, 5), "indices": MIXED, "axis": 1})
arguments("GatherNd", lambda d: {"params": d(2, 3, 4), "indices": PLACES})
arguments("IdentityN", lambda d: {"input": [d(2, 3), d()]})
arguments("InplaceUpdate InplaceAdd InplaceSub", lambda d: {"x": d(5, 3), "i": [1, 4], "v": d(2, 3)})
arguments("MirrorPad", lambda d: {"input": d(4, 5), "paddings": [[1, 2], [0, 2]], "mode": "REFLECT"})
arguments("MirrorPadGrad", lambda d: {"input": d(7, 7), "paddings": [[1, 2], [0, 2]], "mode": "REFLECT"})
arguments("OneHot", lambda d: {"indices": MIXED, "depth": 4, "on_value": d(), "off_value": d()})
arguments("Pack", lambda d: {"values": [d(2, 3), d(2, 3)], "axis": 1})
arguments("ParallelConcat", lambda d: {"values": [d(1, 3), d(1, 3)], "shape": [2, 3]})
arguments("Pad", lambda d: {"input": d(4, 5), "paddings": [[1, 2], [0, 2]]})
arguments("PadV2", lambda d: {"input": d(4, 5), "paddings": [[1, 2], [0, 2]], "constant_values": d()})
arguments(
    "RaggedGather",
    lambda d: {
        "params_nested_splits": [np.array([0, 2, 3])],
        "params_dense_values": d(3),
        "indices": [1, 0],
        "OUTPUT_RAGGED_RANK": 1,
    },
)
arguments("RaggedTensorToSparse", lambda d: {"rt_nested_splits": [np.array([0, 2, 3])], "rt_dense_values": d(3)})
arguments(
    "RaggedTensorToTensor",
    lambda d: {
        "shape": [2, 3],
        "values": d(3),
        "default_value": d(),
        "row_partition_tensors": [np.array([0, 2, 3])],
        "row_partition_types": ["ROW_SPLITS"],
    },
)
arguments("Reshape", lambda d: {"tensor": d(4, 6), "shape": [3, -1]})
arguments("Reverse", lambda d: {"tensor": d(4, 6), "dims": [True, False]})
arguments("ReverseV2", lambda d: {"tensor": d(4, 6), "axis": [1]})
arguments("ReverseSequence", lambda d: {"input": d(3, 6), "seq_lengths": [2, 6, 0], "seq_dim": 1})
arguments("Roll", lambda d: {"input": d(4, 6), "shift": 2, "axis": 1})
arguments("ShapeN", lambda d: {"input": [d(4, 6)]})
arguments("Slice", lambda d: {"input": d(4, 6), "begin": [1, 2], "size": [2, -1]})
arguments("Split", lambda d: {"axis": 1, "value": d(4, 6), "num_split": 3})
arguments("SplitV", lambda d: {"value": d(4, 6), "size_splits": [1, 5], "axis": 1, "num_split": 2})
arguments("StridedSlice", lambda d: {"input": d(4, 6), "begin": [0, 5], "end": [4, 0], "strides": [2, -2]})
arguments(
    "StridedSliceGrad", lambda d: {"shape": [4, 6], "begin": [0, 5], "end": [4, 0], "strides": [2, -2], "dy": d(2, 3)}
)
arguments(
    "TensorStridedSliceUpdate",
    lambda d: {"input": d(4, 6), "begin": [0, 5], "end": [4, 0], "strides": [2, -2], "value": d(2, 3)},
)
arguments("Tile", lambda d: {"input": d(2, 3), "multiples": [2, 1]})
arguments("Unpack", lambda d: {"value": d(2, 3), "num": 2})
arguments("CheckNumerics CheckNumericsV2", lambda d: {"tensor": d(2, 3), "message": "no number"})

# --- random numbers ---------------------------------------------------------------------------------------------------

SEEDS = {"seed": 3, "seed2": 4}
arguments(
    "RandomUniform RandomStandardNormal TruncatedNormal",
    lambda d: {"shape": [101], "dtype": tf.as_dtype(d.dtype), **SEEDS},
)
arguments("RandomGamma", lambda d: {"shape": [9], "alpha": d.positive(3), **SEEDS})
arguments("RandomPoissonV2 RandomPoisson", lambda d: {"shape": [9], "rate": d.positive(3), **SEEDS})
arguments("RandomGammaGrad", lambda d: {"alpha": d.positive(9), "sample": d.positive(9)})
arguments("RandomShuffle", lambda d: {"value": d(9, 2), **SEEDS})
arguments("Multinomial", lambda d: {"logits": d(3, 5), "num_samples": 7, **SEEDS})
arguments("StatelessMultinomial", lambda d: {"logits": d(3, 5), "num_samples": 7, "seed": [3, 4]})
arguments(
    "StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal",
    lambda d: {"shape": [101], "seed": [3, 4], "dtype": tf.as_dtype(d.dtype)},
)
STATE = {"key": np.array([3], np.uint64), "counter": np.array([4, 5], np.uint64), "alg": 1}
arguments(
    "StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2",
    lambda d: {"shape": [101], **STATE, "dtype": tf.as_dtype(d.dtype)},
)
arguments("StatelessRandomGammaV3", lambda d: {"shape": [9, 3], **STATE, "alpha": d.positive(3)})
arguments(
    "StatelessRandomPoisson", lambda d: {"shape": [9, 3], "seed": [3, 4], "lam": d.positive(3), "dtype": tf.int32}
)
arguments("StatelessShuffle", lambda d: {"value": d(9, 2), **STATE})
arguments(
    "StatelessRandomBinomial", lambda d: {"shape": [9, 3], "seed": [3, 4], "counts": d.positive(3), "probs": d.unit(3)}
)

# --- variables --------------------------------------------------------------------------------------------------------

arguments("ResourceApplyGradientDescent", lambda d: _variables(d, "var") | {"alpha": d.unit(), "delta": d(5, 7)})
arguments("ResourceApplyMomentum ResourceApplyKerasMomentum", lambda d: _step(d, "var accum", "lr momentum"))
arguments("ResourceApplyAdagrad", lambda d: _step(d, "var accum", "lr"))
arguments("ResourceApplyAdagradV2", lambda d: _step(d, "var accum", "lr epsilon"))
arguments("ResourceApplyAdadelta", lambda d: _step(d, "var accum accum_update", "lr rho epsilon"))
arguments("ResourceApplyRMSProp", lambda d: _step(d, "var ms mom", "lr rho momentum epsilon"))
arguments("ResourceApplyAdam", lambda d: _step(d, "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon"))
arguments("ResourceApplyAdaMax", lambda d: _step(d, "var m v", "beta1_power lr beta1 beta2 epsilon"))
arguments("ResourceApplyFtrl", lambda d: _step(d, "var accum linear", "lr l1 l2 lr_power"))
for _how in ("Add", "Sub", "Update", "Max", "Min", "Mul", "Div"):
    arguments(
        f"ResourceScatter{_how}",
        lambda d: _variables(d, "resource") | {"indices": [1, 0, 1], "updates": d(3, 7)},
    )
    if _how not in ("Mul", "Div"):
        arguments(
            f"ResourceScatterNd{_how}",
            lambda d: _variables(d, "ref") | {"indices": [[1], [0], [1]], "updates": d(3, 7)},
        )
arguments(
    "AssignVariableOp AssignAddVariableOp AssignSubVariableOp", lambda d: _variables(d, "resource") | {"value": d(5, 7)}
)
arguments("ResourceGather", lambda d: _variables(d, "resource") | {"indices": [1, 0, 1], "dtype": _type(d)})
arguments("ResourceGatherNd", lambda d: _variables(d, "resource") | {"indices": [[1], [0]], "dtype": _type(d)})
arguments("ReadVariableOp", lambda d: _variables(d, "resource") | {"dtype": _type(d)})
arguments(
    "ResourceStridedSliceAssign",
    lambda d: _variables(d, "ref") | {"begin": [0, 5], "end": [4, 0], "strides": [2, -2], "value": d(2, 3)},
)


def _type(d: Draw) -> Any:
    return tf.float64 if d.double else tf.as_dtype(d.dtype)


def _variables(d: Draw, names: str) -> dict[str, Any]:
    return {name: tf.Variable(d.positive(5, 7)) for name in names.split()}


def _step(d: Draw, variables: str, numbers: str) -> dict[str, Any]:
    return _variables(d, variables) | {name: d.unit() for name in numbers.split()} | {"grad": d(5, 7)}
