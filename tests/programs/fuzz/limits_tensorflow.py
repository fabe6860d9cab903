"""Limits of TensorFlow's operations, where they are not functions of one or two numbers, or say why they are wider."""

from dataclasses import replace
from fnmatch import fnmatchcase

from programs.fuzz.limit import FORMULA, FUNCTION, PRODUCT, RANDOM, SUM, Limit

_SIGNIFICANDS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_GROUPS = [
    # random numbers; which number of a window gets a gradient, where one is NaN; a step at 0, which the framework's exp x - 1
    # moves; numbers below 2^-126, which Keras makes of float64; indices that sums of infinities choose; quotients by numbers
    # above 2^1022, whose reciprocals the framework takes for 0; vectors beyond the rank; the framework's incomplete gamma
    # function of parameters near 0 and of 1e30, which is 2e-27 where it should be 0.5
    (
        RANDOM,
        """
        Random* Stateless* Truncated* Multinomial keras.layers.*Dropout keras.layers.*Noise keras.layers.Random*
        MaxPool*Grad*special Dilation2D*special Dilation2D*gradients Selu*range?gradients keras.ops.geomspace*special keras.*sparsemax*special
        SqrtGrad*float64*range keras.ops.svd Igamma*range*
    """,
    ),
    # the framework's float64 errs by as much, see limits_pytorch.py
    (
        replace(FUNCTION, ulps=2.0**10, overflows=True),
        """
        Digamma*float64* Lgamma*gradients tf.math.digamma*float64* tf.math.lgamma*gradients
    """,
    ),
    # it errs by 5e-14, also of results that are smaller; it has numbers for NaN beside 0, -1 beside 0, and two infinite numbers
    (replace(FUNCTION, ulps=2.0**10, least=2.0**-44, spreads=True, overflows=True), "Igamma*float64*"),
    (replace(FUNCTION, spreads=True), "Igamma* tf.math.igamma*"),
    # infinite, where the framework has NaN
    (replace(FUNCTION, poles=True), "Polygamma tf.math.polygamma"),
    (replace(FUNCTION, ulps=2.0**16), "Ndtri*float64*gradients tf.math.ndtri*float64*gradients"),
    # 1 / x of a number below 2^-1022, where the framework has NaN; its gradient is -K0 - K1 / x
    (replace(FUNCTION, ulps=4, overflows=True), "BesselK1*float64*range*"),
    # the framework's squares overflow; it has no float64
    (replace(SUM, share=2.0**-19, overflows=True), "LRN* tf.nn.l*response*"),
    # the logarithm divides by sums, which may be small
    (replace(PRODUCT, share=2.0**-6), "keras.layers.MelSpectrogram*gradients"),
    # an error of scores counts as often as e^score has it, and one of a product in each power of a matrix
    (replace(PRODUCT, share=2.0**-4), "keras.layers.*Attention tf.linalg.expm"),
    (replace(PRODUCT, share=2.0**-19, single=True), "keras.layers.UpSampling2D keras.layers.Resizing"),
    (
        replace(PRODUCT, single=True),
        """
        tf.image.rgb_to_* tf.image.per_image_standardization tf.image.adjust_saturation
    """,
    ),
    # vectors whose sign is open; numbers near 0 beside the largest; NaN in a group
    (RANDOM, "Svd*gradients SelfAdjoint*gradients tf.linalg.svd*gradients tf.linalg.eig*gradients"),
    (
        replace(PRODUCT, share=2.0**-6, signed=False, spreads=True, overflows=True),
        """
        Svd SelfAdjointEigV2 MatrixSolveLs tf.linalg.svd tf.linalg.eig* tf.linalg.pinv tf.linalg.matrix_rank
        keras.ops.lstsq keras.ops.pinv keras.ops.matrix_rank
    """,
    ),
    # NaN in a group
    (replace(FUNCTION, spreads=True), "keras.ops.qr*special Qr*special QuantizeAndDequantize*special"),
    # a number between two of the grid may become either
    (replace(FUNCTION, share=2.0**-6, native=True), "FakeQuant* QuantizeAndDequantize*"),
    (
        PRODUCT,
        """
        MatMul SparseMatMul BatchMatMul* Einsum Conv* Depthwise* FusedBatchNorm* *SoftmaxCross*gradients SparseTensorDenseMatMul*gradients
        tf.einsum tf.tensordot tf.nn.*conv* tf.nn.*softmax*gradients tf.nn.batch_normalization tf.nn.*moments
        tf.math.reduce_std tf.math.reduce_variance tf.image.sobel_edges tf.sparse.*gradients tf.linalg.mat[mv]* tf.linalg.tensordot tf.linalg.einsum
        keras.layers.* keras.losses.*gradients keras.ops.*normalization keras.ops.*dot keras.ops.inner keras.ops.outer
        keras.ops.*fft* MatrixTriangularSolve*special keras.ops.matmul keras.ops.kron keras.ops.*std keras.ops.*var keras.ops.*crossentropy*gradients keras.ops.corrcoef
        keras.ops.cov keras.ops.vander keras.ops.moments keras.ops.einsum
    """,
    ),
    (replace(SUM, share=2.0**-16, overflows=True, single=True), "keras.ops.*space*gradients"),
    (replace(PRODUCT, share=2.0**-6, single=True), "tf.image.ssim*"),
    # gradients of factors are several products
    (
        replace(PRODUCT, share=2.0**-6),
        """
        Cholesky*gradients Qr*gradients Matrix[ISTDE]*gradients LogMatrix*gradients tf.linalg.* keras.ops.*gradients
    """,
    ),
    # the framework's own, beside which these are measured, looks weights up in a table of 1,024
    (replace(PRODUCT, share=2.0**-9, overflows=True, single=True), "ResizeBicubic* tf.image.resize"),
    # of these the framework has float32 alone, or places and factors in float32
    (
        replace(SUM, share=2.0**-18, overflows=True, single=True),
        """
        ResizeBilinear* ResizeArea ScaleAndTranslate* CropAndResize* ImageProjective* AdjustContrastv2 AdjustSaturation AdjustHue
        tf.image.* LinSpace Range RaggedRange keras.ops.linspace keras.ops.*space
    """,
    ),
    (
        SUM,
        """
        LogSoftmax *SoftmaxCross* EuclideanNorm L2Loss SparseTensorDenseMatMul tf.sparse.* tf.norm tf.clip_by* tf.*.*softmax*
        tf.math.l2_normalize tf.nn.l2_* tf.linalg.*norm* keras.*softmax keras.losses.* keras.ops.*norm* keras.ops.*crossentropy
        keras.ops.cdist keras.ops.segment* keras.*sparsemax tf.nn.ctc*
        Sum Mean Cumsum CumulativeLogsumexp Prod Cumprod AvgPool* Segment* UnsortedSegment* SparseSegment* *ScatterN* *Scatter[ASNU]*
        SparseTensorDenseAdd SparseReduceSum* SparseFillEmptyRowsGrad Cross keras.ops.cross Lu Tridiagonal* Dilation2DBackprop*
        *Bincount BiasAddGrad MaxPool* MirrorPadGrad AddN Accumulate* Gather* ResourceApply* ResourceGather*
        tf.math.*bincount* tf.math.*cum* tf.math.reduce_* tf.math.segment* tf.math.unsorted* tf.nn.*pool* tf.ragged* tf.signal.*
        keras.ops.*cum* keras.ops.*sum keras.ops.*mean keras.ops.trace keras.ops.trapezoid keras.ops.average keras.ops.*prod
        keras.ops.*quantile keras.ops.*percentile keras.ops.*median keras.ops.*pool tf.math.lbeta tf.nn.log_poisson_loss
        tf.math.zero_fraction tf.nn.zero_fraction tf.math.l2* tf.math.accumulate_n tf.math.add_n keras.ops.histogram
    """,
    ),
    # the framework's formulas overflow on the way; NaN in its float64 where there is a number, or an infinity
    (
        replace(FUNCTION, overflows=True),
        """
        BesselI* Digamma Erf SoftplusGrad InvGrad ReciprocalGrad RsqrtGrad tf.math.bessel* tf.math.digamma keras.ops.i*
        Pow*gradients Reciprocal*gradients Inv*gradients SqrtGrad*
    """,
    ),
    # the framework's float64 is wrong there, by what 1 is rounded to: exp x - 1, and the quantile of (1 + x) / 2
    (replace(FUNCTION, least=2.0**-50), "Elu Selu tf.nn.?elu keras.*.?elu"),
    (replace(FUNCTION, least=2.0**-50, spreads=True), "Erfinv tf.math.erfinv"),  # of 1 + 2^-52, too
]
"""Limits of TensorFlow's operations by patterns of names, of which the first counts; or of "OPERATION TYPE KIND gradients"."""
_PATTERNS = [(pattern, limit) for limit, patterns in _GROUPS for pattern in patterns.split()]


def limit_of(operation: str, sample: str) -> Limit:
    names = operation.partition(" ")[0], f"{operation} {sample}"
    matching = (limit for pattern, limit in _PATTERNS for each in names if fnmatchcase(each, pattern))
    limit = next(matching, FUNCTION)
    if not sample.endswith("gradients") and not operation.startswith(("tf.", "keras.", "ResourceApply")):
        return limit
    # made of other operations by TensorFlow's formulas, each result rounded: of numbers of about 1 that cancel
    last = 2.0 ** -_SIGNIFICANDS.get(sample.partition(" ")[0], 24)
    share, least, reason = limit.share + 32 * last, limit.least + 16 * last, limit.reason or FORMULA
    return replace(limit, share=share, least=least, reason=reason)
