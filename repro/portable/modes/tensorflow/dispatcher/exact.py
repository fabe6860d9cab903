"""Operations that TensorFlow computes exactly, by name.

Copies, comparisons, choices, integers and what is one IEEE 754 operation for each element: these have one result on
every processor, and TensorFlow's own kernels run.
"""

from repro.portable.modes.tensorflow.dispatcher.holders import HOLDERS

MEMORY = """
    Assign AssignVariableOp BatchToSpace BatchToSpaceND Bitcast BroadcastTo Concat ConcatV2 Const Copy CopyHost DeepCopy
    DepthToSpace DestroyTemporaryVariable Diag DiagPart DynamicPartition DynamicStitch Empty EnsureShape ExpandDims
    ExtractImagePatches ExtractVolumePatches FakeParam Fill Gather GatherNd GatherV2 GuaranteeConst HostConst Identity
    IdentityN ImmutableConst InplaceUpdate InvertPermutation MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2
    MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MirrorPad OneHot OnesLike
    Pack Pad PadV2 ParallelConcat Placeholder PlaceholderV2 PlaceholderWithDefault PreventGradient ReadVariableOp Reshape
    ResourceGather ResourceGatherNd ResourceStridedSliceAssign Reverse
    ReverseSequence ReverseV2 Roll Shape ShapeN Size Rank Slice Snapshot SpaceToBatch
    SpaceToBatchND SpaceToDepth Split SplitV Squeeze StopGradient StridedSlice StridedSliceAssign StridedSliceGrad
    TemporaryVariable TensorStridedSliceUpdate Tile Transpose Unpack VarHandleOp Variable VariableV2
    VarIsInitializedOp IsVariableInitialized ZerosLike ConjugateTranspose BroadcastArgs BroadcastGradientArgs
    DestroyResourceOp VariableShape ComputeAccidentalHits SparseToDense Real Imag Complex Conj
    SparseAddGrad SparseConcat SparseReorder SparseSlice SparseSliceGrad SparseSplit
"""
"""Operations that move numbers, or make room for them."""

CHOICES = """
    ApproximateEqual ArgMax ArgMin Bucketize ClipByValue Equal Greater GreaterEqual InTopK InTopKV2 IsFinite IsInf IsNan
    Less LessEqual ListDiff LowerBound Max Maximum Min Minimum NotEqual NthElement ResourceScatterMax ResourceScatterMin
    ResourceScatterNdMax ResourceScatterNdMin ScatterMax ScatterMin ScatterNdMax ScatterNdMin SegmentMax
    SegmentMin Select SelectV2 SparseFillEmptyRows SparseReduceMax SparseReduceMaxSparse SparseSparseMaximum
    SparseSparseMinimum TensorScatterMax TensorScatterMin TopK TopKV2 Unique UniqueV2 UniqueWithCounts
    UniqueWithCountsV2 UnsortedSegmentMax UnsortedSegmentMin UpperBound Where
"""
"""Comparisons, and the numbers that they choose; the first of equals."""

SINGLE = """
    Abs Add AddV2 AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp BiasAdd BiasAddV1 Cast Ceil CheckNumerics
    CheckNumericsV2 Dilation2D Div DivNoNan EditDistance Floor FloorDiv FloorMod LeakyRelu LeakyReluGrad Mod Mul MulNoNan Neg NextAfter RaggedRange RealDiv Relu
    Relu6 Relu6Grad ReluGrad Rint Round Sign SparseAdd
    SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul Sqrt Square SquaredDifference Sub TruncateDiv TruncateMod Xdivy
"""
"""One IEEE 754 operation for each element, or several of which no two can be contracted."""

DRAWS = """
    RandomUniform RandomUniformInt RandomShuffle StatefulUniform StatefulUniformFullInt StatefulUniformInt
    StatelessRandomUniform StatelessRandomUniformV2 StatelessRandomUniformInt StatelessRandomUniformIntV2
    StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessShuffle StatelessRandomGetKeyCounter
    StatelessRandomGetAlg StatelessRandomGetKeyCounterAlg RngSkip RngReadAndSkip
"""
"""Random numbers that are bits of Philox or ThreeFry."""

CONTROL = """
    Case Enter Exit For If LoopCond MapDefun Merge NextIteration NoOp PartitionedCall PyFunc PyFuncStateless EagerPyFunc
    RefEnter RefExit RefIdentity RefMerge RefNextIteration RefSelect RefSwitch StatefulPartitionedCall StatelessCase
    StatelessIf StatelessWhile Switch While Assert Print PrintV2 Timestamp ToBool Send Recv DebugIdentityV2
    GetSessionHandleV2 GetSessionTensor RemoteCall
"""
"""Operations that call functions and decide which; the functions' own operations are replaced when they are made."""

OF_PARTS = "Add AddV2 AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp BiasAdd Cast Neg Sub"
REAL = frozenset(SINGLE.split()) - frozenset(OF_PARTS.split())
"""Operations that are exact for real numbers alone. Of complex ones each is several operations."""
CONTROLLING = frozenset(CONTROL.split())
EXACT = frozenset(" ".join((MEMORY, CHOICES, SINGLE, DRAWS, CONTROL)).split())
NATIVE = "ReproPortable"
"""The operation of nodes that compute definitions without Python: see native.py."""


def is_exact(name: str) -> bool:
    """True if TensorFlow computes an operation exactly, or only hands its numbers on."""
    return name in EXACT or name in HOLDERS or name == NATIVE
