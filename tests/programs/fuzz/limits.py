"""How far from float64 a result may be, by operation, as docs/reference/specification.md has it."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Limit:
    """The largest error of a result. What its fields allow is added up."""

    ulps: float = 2
    """In units in the last place of the result."""
    share: float = 0
    """Relative to the largest number of the same array."""
    least: float = 0
    """As it is: magnitudes below this one count as 0."""
    own: float = 0
    """Relative to the framework's own error."""
    spreads: bool = False
    """True if NaN, infinities and what is 2^127 and more make NaN of all numbers that they are grouped with."""
    overflows: bool = False
    """True if there may be a number where the framework's formula overflows to NaN."""
    wider: bool = False
    """True if statistics of halves are in float32, as on a GPU."""
    signed: bool = True
    """False for vectors that are unique up to their sign."""
    compared: bool = True
    """False for random numbers."""
    memory: bool = False
    """True for contents of memory, which no setting keeps."""
    narrow: bool = False
    """True where it may be refused in a setting, as float16 of JAX on a CPU without F16C."""


FUNCTION = Limit()
"""A function of one or two numbers."""
PRODUCT = Limit(share=2.0**-8, least=2.0**-100, spreads=True)
"""Operands have 13 bits below the largest of their row ("Grids"): of few terms that do not cancel, a result has 8 at least."""
SUM = Limit(share=2.0**-20, least=2.0**-100, spreads=True)
"""Numbers have 24 bits below the largest of their group."""
DOUBLE = 2.0**-36
"""The share of sums and products of float64, whose operands have all their bits: 16 of them are left to what cancels."""
SEVERAL = Limit(share=2.0**-20)
"""Several operations, each of which rounds, in the order of the framework's formula."""
RANDOM = Limit(compared=False)
"""Random numbers, and what else cannot be compared with float64."""
MEMORY = Limit(compared=False, memory=True)
LIMITS: dict[str, dict[str, Limit]] = {"pytorch": {}, "tensorflow": {}, "jax": {}}
"""Limits by framework and operation; all others are functions of numbers."""


def limit_of(framework: str, operation: str, sample: str = "") -> Limit:
    """The limit of a call, of which "OPERATION TYPE gradients" says more than its parts.

    A variant, as "norm fro", has the limit of its operation. A gradient by the framework's own formula may have twice the
    framework's own error; and it is a sum where the arguments of a function of numbers have different shapes. Random
    calls are not compared, nor gradients of groups with NaN, nor sums of numbers below 2^-100, which count as 0.
    """
    dtype, way = sample.partition(" ")[0], sample.rpartition(" ")[2]
    base = operation.partition(" ")[0]
    names = [
        f"{operation} {dtype} {way}",
        f"{operation} {way}",
        f"{base} {way}",
        f"{operation} {dtype}",
        operation,
        base,
    ]
    limits = LIMITS[framework]
    limit = next((limits[name] for name in names if name in limits), FUNCTION)
    if framework == "jax":
        return _of_jax(replace(limit, own=2) if way == "gradients" else limit, dtype, way)
    if dtype == "float64":
        limit = replace(limit, share=DOUBLE, least=DOUBLE) if limit.spreads else _beside_its_own(limit)
    kind = sample.split(" ")[1] if sample else ""
    uncertain = kind == "tiny" or (kind == "special" and way == "gradients")
    if kind == "random" or (limit.spreads and uncertain):
        return replace(limit, compared=False)
    if way != "gradients":
        return limit
    summed = not limit.share and kind != "range"
    if summed:
        limit = replace(limit, share=SUM.share, least=max(limit.least, SUM.least), spreads=True)
    return replace(limit, own=2)


def _beside_its_own(limit: Limit) -> Limit:
    """A function of float64 beside the framework's, which has an error, too: docs/reference/functions.md has those of ours."""
    return replace(limit, ulps=max(limit.ulps, 32), least=max(limit.least, 2.0**-49))


# --- PyTorch ----------------------------------------------------------------------------------------------------------

_PYTORCH = {
    PRODUCT: """
        __rmatmul__ addbmm addmm addmv addr baddbmm bmm cdist corrcoef cov dot einsum inner kron linalg.multi_dot matmul mm
        mv outer tensordot vdot linalg.vecdot linalg.matrix_power linalg.vander nn.functional.bilinear
        nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d
        nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.linear
        nn.functional.linear_cross_entropy nn.functional.scaled_dot_product_attention torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        nn.functional.batch_norm nn.functional.group_norm nn.functional.instance_norm nn.functional.layer_norm
        nn.functional.rms_norm nn.functional.local_response_norm
        softmax log_softmax masked.softmax masked.log_softmax masked.softmin nn.functional.softmin _softmax_backward_data
        torch.ops.aten._safe_softmax.default nn.functional.cross_entropy
        std std_mean var var_mean masked.std masked.var norm linalg.norm linalg.vector_norm linalg.matrix_norm masked.norm
        nn.functional.normalize masked.normalize renorm dist nn.functional.pairwise_distance nn.functional.pdist
        nn.functional.cosine_similarity nn.functional.cosine_embedding_loss nn.functional.triplet_margin_loss
        nn.functional.triplet_margin_with_distance_loss
    """,
    replace(PRODUCT, signed=False): "svd linalg.svd linalg.eigh linalg.svdvals",
    replace(PRODUCT, wider=True): """
        native_batch_norm _native_batch_norm_legit _batch_norm_with_update native_group_norm native_layer_norm
    """,
    replace(PRODUCT, share=2.0**-7): """
        cholesky cholesky_inverse cholesky_solve linalg.cholesky linalg.cholesky_ex linalg.cond linalg.det
        linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lu linalg.lu_factor
        linalg.lu_factor_ex linalg.lu_solve linalg.matrix_rank linalg.pinv linalg.polar linalg.qr linalg.slogdet linalg.solve
        linalg.solve_ex linalg.solve_triangular linalg.tensorinv linalg.tensorsolve logdet lu
        lu_solve pinverse triangular_solve linalg.matrix_sqrth ormqr lu_unpack
    """,
    SUM: """
        sum mean nansum nanmean masked.sum masked.mean cumsum masked.cumsum sum_to_size trace trapezoid trapz
        cumulative_trapezoid logsumexp masked.logsumexp logcumsumexp index_add scatter_add scatter_reduce index_reduce
        index_put put _unsafe_masked_index_put_accumulate nn.functional.embedding nn.functional.embedding_bag
        nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
        nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.interpolate
        nn.functional.upsample_bilinear nn.functional.upsample_nearest _upsample_bilinear2d_aa nn.functional.grid_sample
        grid_sampler_2d grid_sampler_3d nn.functional.ctc_loss nn.functional.mse_loss nn.functional.l1_loss
        nn.functional.nll_loss nn.functional.kl_div nn.functional.huber_loss nn.functional.smooth_l1_loss
        nn.functional.poisson_nll_loss nn.functional.gaussian_nll_loss nn.functional.hinge_embedding_loss
        nn.functional.margin_ranking_loss nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
        nn.functional.multilabel_soft_margin_loss nn.functional.soft_margin_loss nn.functional.binary_cross_entropy
        nn.functional.binary_cross_entropy_with_logits linalg.cross cross prod cumprod masked.prod masked.cumprod
    """,
    replace(SEVERAL, least=2.0**-22): """
        signal.windows.blackman signal.windows.general_cosine signal.windows.general_hamming signal.windows.hamming
        signal.windows.nuttall
    """,
    SEVERAL: "addcmul addcdiv lerp logaddexp2",
    replace(FUNCTION, overflows=True): """
        i0 special.i0e special.i1 special.i1e fmod remainder __rmod__
    """,
    MEMORY: """
        empty empty_like empty_permuted empty_strided new_empty new_empty_strided
    """,
    RANDOM: """
        svd_lowrank pca_lowrank bernoulli cauchy exponential geometric log_normal multinomial nn.functional.multi_head_attention_forward normal rand_like randint randint_like randn randn_like uniform
        nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d
        nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
        nn.functional.rrelu
    """,
}
LIMITS["pytorch"] = {name: limit for limit, names in _PYTORCH.items() for name in names.split()}
LIMITS["pytorch"] |= {
    # differences of products of numbers up to 9, which have 13 bits
    f"{name} gradients": replace(limit, least=2.0**-9)
    for name, limit in LIMITS["pytorch"].items()
    if limit.share >= PRODUCT.share
}
LIMITS["pytorch"] |= {
    # PyTorch's float64, to which they are compared, has fewer bits there: pi x is rounded, 1 + erf x and x - tanh x cancel,
    # 1 / 6 is a number of float32, and gamma is reflected
    **{
        name: replace(FUNCTION, least=2.0**-50, overflows=True)
        for name in ("sinc", "special.ndtr", "nn.functional.gelu", "nn.functional.tanhshrink float64", "tanh float64")
    },
    "nn.functional.hardsigmoid float64": replace(FUNCTION, share=2.0**-23),
    "digamma float64": RANDOM,
    "lgamma float64 gradients": RANDOM,
    # PyTorch's formulas, of numbers that cancel: i0e - i1e / x, x^2 / 2 + log_ndtr x, cos x - sinc x
    **{f"special.{name} gradients": replace(FUNCTION, least=2.0**-20) for name in ("i0e", "i1", "i1e")},
    "special.i1e bfloat16 gradients": replace(FUNCTION, least=2.0**-8),
    "special.i1e float16 gradients": replace(FUNCTION, least=2.0**-11),
    # exp(y^2 / 2) multiplies the error of y by y^2
    "special.ndtri gradients": replace(FUNCTION, ulps=8),
    "special.ndtri float64 gradients": replace(FUNCTION, ulps=2.0**16),
    # the sign of NaN, which PyTorch's conversions to bfloat16 change
    "copysign bfloat16": RANDOM,
    # vectors of the null space
    "linalg.svd forward": RANDOM,
    "special.log_ndtr gradients": RANDOM,
    "sinc gradients": replace(FUNCTION, share=2.0**-11),
    "logsumexp forward": replace(SUM, spreads=False),
    # logarithms in halves
    "logcumsumexp": PRODUCT,
    "logcumsumexp bfloat16 gradients": replace(PRODUCT, share=2.0**-4),
    "cumprod gradients": replace(SUM, share=2.0**-18),
    # 1 - eps is rounded before it is compared
    "logit": replace(FUNCTION, ulps=8),
    # which of equal numbers
    "topk gradients": RANDOM,
    # a number where a weight of 0 meets what is infinitely far
    **{
        name: replace(SUM, overflows=True)
        for name in (
            "nn.functional.grid_sample",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "nn.functional.soft_margin_loss",
        )
    },
}


# --- TensorFlow -------------------------------------------------------------------------------------------------------

_SIGNIFICANDS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
_TENSORFLOW = {
    # random numbers; which number of a window gets a gradient where several are equal, or one is NaN; TensorFlow's formulas
    # overflow on the way
    RANDOM: """
        Random* Stateless* Truncated* Multinomial keras.layers.*Dropout keras.layers.*Noise keras.layers.Random* MaxPool*special *sparsemax*special *geomspace*special tf.image.resize*special
        *[Qq]r*special
        keras.layers.MaxPooling3D*gradients Lgamma*gradients Ndtri*gradients
        Pow*gradients Selu*gradients SqrtGrad*gradients Bessel*gradients Erfinv*float64* InvGrad*float64*
        ReciprocalGrad*float64* RsqrtGrad*range SqrtGrad*float64* Digamma*float64* tf.math.xlogy*special
    """,
    # the framework's squares overflow; it has no float64
    replace(SUM, share=2.0**-19, overflows=True): "LRN* tf.nn.l*response*",
    # an error of scores counts as often as e^score has it, and one of a product in each power of a matrix
    replace(PRODUCT, share=2.0**-4): "keras.layers.*Attention tf.linalg.expm",
    PRODUCT: """
        MatMul BatchMatMul* Einsum Conv* Depthwise* FusedBatchNorm* *SoftmaxCross*gradients SparseTensorDenseMatMul*gradients
        tf.einsum tf.tensordot tf.nn.*conv* tf.nn.*softmax*gradients tf.nn.batch_normalization tf.nn.*moments
        tf.math.reduce_std tf.math.reduce_variance tf.image.rgb_to_* tf.image.sobel_edges tf.image.per_image_standardization
        tf.image.adjust_saturation tf.sparse.*gradients tf.linalg.mat[mv]* tf.linalg.tensordot tf.linalg.einsum
        keras.layers.* keras.losses.*gradients keras.ops.*normalization keras.ops.*dot keras.ops.inner keras.ops.outer
        keras.ops.*fft* MatrixTriangularSolve*special keras.ops.matmul keras.ops.kron keras.ops.*std keras.ops.*var keras.ops.*crossentropy*gradients keras.ops.corrcoef
        keras.ops.cov keras.ops.vander keras.ops.moments keras.ops.einsum
    """,
    # gradients of factors are several products
    replace(PRODUCT, share=2.0**-6): """
        Cholesky*gradients Qr*gradients Matrix[ISTDE]*gradients LogMatrix*gradients tf.linalg.* keras.ops.*gradients tf.image.ssim*
    """,
    # the framework's own, beside which these are measured, looks weights up in a table of 1,024
    replace(PRODUCT, share=2.0**-9, overflows=True): "ResizeBicubic* tf.image.resize",
    # of these the framework has float32 alone, or places and factors in float32
    replace(SUM, share=2.0**-18, overflows=True): """
        ResizeBilinear* ScaleAndTranslate* CropAndResize* ImageProjective* AdjustContrastv2 AdjustSaturation AdjustHue
        tf.image.* LinSpace Range RaggedRange keras.ops.linspace keras.ops.*space
    """,
    SUM: """
        LogSoftmax *SoftmaxCross* EuclideanNorm L2Loss SparseTensorDenseMatMul tf.sparse.* tf.norm tf.clip_by* tf.*.*softmax*
        tf.math.l2_normalize tf.nn.l2_* tf.linalg.*norm* keras.*softmax keras.losses.* keras.ops.*norm* keras.ops.*crossentropy
        keras.ops.cdist keras.ops.segment* keras.*sparsemax tf.nn.ctc*
        Sum Mean Cumsum CumulativeLogsumexp Prod Cumprod AvgPool* Segment* UnsortedSegment* SparseSegment* *ScatterN* *Scatter[ASNU]*
        *Bincount BiasAddGrad MaxPool* MirrorPadGrad AddN Accumulate* Gather* ResourceApply* ResourceGather*
        tf.math.*bincount* tf.math.*cum* tf.math.reduce_* tf.math.segment* tf.math.unsorted* tf.nn.*pool* tf.ragged* tf.signal.*
        keras.ops.*cum* keras.ops.*sum keras.ops.*mean keras.ops.trace keras.ops.trapezoid keras.ops.average keras.ops.*prod
        keras.ops.*quantile keras.ops.*percentile keras.ops.*median keras.ops.*pool tf.math.lbeta tf.nn.log_poisson_loss
        tf.math.zero_fraction tf.nn.zero_fraction tf.math.l2* tf.math.accumulate_n tf.math.add_n keras.ops.histogram
    """,
    # NaN in the framework's float64 where there is a number, or an infinity
    replace(
        FUNCTION, overflows=True
    ): "BesselI* Digamma Erf SoftplusGrad InvGrad ReciprocalGrad RsqrtGrad tf.math.bessel* tf.math.digamma keras.ops.i*",
    # the framework's float64 is wrong there, by what 1 is rounded to: exp x - 1, and the quantile of (1 + x) / 2
    replace(FUNCTION, least=2.0**-50): "Elu Selu tf.nn.?elu keras.*.?elu",
    replace(FUNCTION, least=2.0**-50, spreads=True): "Erfinv tf.math.erfinv",  # of 1 + 2^-52, too
}
"""Limits of TensorFlow's operations by patterns of names, of which the first counts; one may end with a kind of numbers, or
with gradients."""
_PATTERNS = [(pattern, limit) for limit, patterns in _TENSORFLOW.items() for pattern in patterns.split()]


class _ByPattern(dict[str, Limit]):
    """Limits of "OPERATION TYPE WAY"."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Limit:
        operation, dtype, way = name.rsplit(" ", 2)
        base = operation.partition(" ")[0]
        names = base, f"{base} {dtype} {way}"
        matching = (limit for pattern, limit in _PATTERNS for each in names if fnmatchcase(each, pattern))
        limit = next(matching, FUNCTION)
        if way != "gradients" and not operation.startswith(("tf.", "keras.", "ResourceApply")):
            return limit
        # made of other operations by TensorFlow's formulas, each result rounded: of numbers of about 1 that cancel
        last = 2.0 ** -_SIGNIFICANDS.get(dtype, 24)
        return replace(limit, share=limit.share + 32 * last, least=limit.least + 16 * last)


LIMITS["tensorflow"] = _ByPattern()


# --- JAX --------------------------------------------------------------------------------------------------------------


_JAX_UNITS = {"float32": 2.0**-18, "bfloat16": 2.0**-4, "float16": 2.0**-7, "float64": 2.0**-40}
"""Some units in the last place of one: errors of what JAX composes, where numbers of about one cancel."""


def _of_jax(limit: Limit, dtype: str, way: str) -> Limit:
    """Results of float64 are compared with the framework's own, whose functions have errors themselves.

    Gradients are JAX's own formulas, of which many cancel, as 1 - x^2 does: then numbers of about one are what is rounded.
    """
    narrow, ulps = dtype == "float16", {"float64": 2.0**12}.get(dtype, limit.ulps)
    if way == "gradients":
        least = max(limit.least, _JAX_UNITS[dtype])
        return replace(limit, ulps=max(ulps, 2.0**10), least=least, overflows=True, narrow=narrow)
    return replace(limit, ulps=ulps, narrow=narrow)


_JAX = {
    # polygamma and gradients of digamma are NaN below -9, where JAX's formula gives other numbers; $: of gradients
    replace(
        FUNCTION, overflows=True
    ): "lax.digamma lax.pow lax.zeta jnp.pow jnp.power jnp.float_power special.digamma special.zeta",
    replace(FUNCTION, overflows=True, spreads=True): "lax.polygamma special.polygamma",
    Limit(ulps=2.0**7, least=2.0**-12, own=2): "special.betaln",
    replace(FUNCTION, spreads=True, own=2): "lax.digamma$ special.digamma$",
    replace(FUNCTION, least=2.0**-10, own=2): "jnp.sinc$",
    replace(FUNCTION, least=2.0**-40, own=2): "lax.igamma lax.igammac special.gammainc special.gammaincc",
    replace(FUNCTION, least=2.0**-20, own=2): "lax.betainc special.betainc",
    PRODUCT: """
        lax.batch_matmul lax.conv lax.conv_general_dilated lax.conv_general_dilated_local lax.conv_transpose lax.dot
        lax.conv_general_dilated_patches lax.conv_with_general_padding lax.dot_general
        jnp.dot jnp.einsum jnp.inner jnp.kron jnp.matmul jnp.matvec jnp.outer jnp.tensordot jnp.vdot jnp.vecdot jnp.vecmat
        jnp.convolve jnp.correlate jnp.corrcoef jnp.cov jnp.polymul jnp.polyval jnp.cross
        jnp.linalg.cross jnp.linalg.matmul jnp.linalg.matrix_power jnp.linalg.multi_dot jnp.linalg.outer jnp.linalg.tensordot
        jnp.linalg.vecdot nn.dot_product_attention image.resize image.scale_and_translate
    """,
    SUM: """
        lax.cumsum lax.reduce_sum lax.reduce_window lax.scatter_add lax.scatter_sub lax.cumlogsumexp
        jnp.sum jnp.mean jnp.nansum jnp.nanmean jnp.cumsum jnp.nancumsum jnp.cumulative_sum jnp.average jnp.trace
        jnp.std jnp.var jnp.nanstd jnp.nanvar jnp.trapezoid jnp.linalg.trace jnp.linalg.norm jnp.linalg.vector_norm
        jnp.linalg.matrix_norm ops.segment_sum nn.standardize nn.softmax nn.log_softmax nn.logmeanexp nn.logsumexp
        special.softmax special.log_softmax
    """,
    replace(PRODUCT, share=2.0**-8, signed=False): """
        lax.linalg.cholesky lax.linalg.eigh lax.linalg.lu lax.linalg.qdwh lax.linalg.qr lax.linalg.svd
        lax.linalg.triangular_solve
    """,
}
_COMPOSED = """
    jnp.logaddexp jnp.logaddexp2 jnp.sinc jnp.i0 nn.gelu nn.silu nn.swish nn.mish nn.softplus nn.log_sigmoid nn.log1mexp nn.celu
    nn.elu nn.selu nn.squareplus nn.sparse_sigmoid special.erfcx
"""
"""Compositions of JAX's own, which round each part: the tails of some are shares of one. See docs/reference/functions.md."""
LIMITS["jax"] = {name.replace("$", " gradients"): limit for limit, names in _JAX.items() for name in names.split()} | {
    f"{name} {dtype}": Limit(least=least, own=2) for name in _COMPOSED.split() for dtype, least in _JAX_UNITS.items()
}
