"""Limits of JAX' functions, where they are not functions of one or two numbers, or say why they are wider."""

from dataclasses import replace
from fnmatch import translate
from re import compile as compiled

from programs.fuzz.limit import DOUBLES, FORMULA, FUNCTION, PRODUCT, RANDOM, SUM, Limit

_COMPOSED = Limit(worst=4, reason=FORMULA)
"""Compositions and gradients by JAX's own formulas, which round each part, so that numbers of about one may cancel: with four times
the framework's largest error of the same result. See docs/reference/functions.md."""
_DOUBLE = replace(_COMPOSED, least=2.0**-40, ulps=2.0**12)
"""The same of float64, of which there is no wider result: some units in the last place of one."""


_LOST = ["special.beta", "special.boxcox", "special.boxcox1p", "special.comb", "special.poch"]
"""Differences of large numbers: of arguments that are not usual no digit may be right, in float64 either."""
_LEFT = ["lax.digamma", "special.digamma"]
"""Their gradients by JAX have wrong digits left of 0, and finite numbers at poles."""
_OPEN = ["lax.reduce_window max", "lax.reduce_window min", "special.zeta"]
"""Gradients of special numbers: which number of a window gets one, where one is NaN; x zeta(1, infinity)."""


def limit_of(operation: str, sample: str) -> Limit:
    """Of gradients the patterns that end in $ count first, of float64 those that end in it.

    Results of float64 are compared with the framework's own, whose functions have errors themselves; and XLA takes parts of
    numbers for 0 that are below 2^-1022.
    """
    dtype, kind, *_ = (*sample.split(" "), "")
    names = [f"{operation} {dtype}", operation]
    if sample.endswith("gradients"):
        names.insert(0, f"{operation}$")
    limit = next((limit for match, limit in _PATTERNS for name in names if match(name)), FUNCTION)
    if sample.endswith("gradients"):
        of = _DOUBLE if dtype == "float64" else _COMPOSED
        least, ulps = max(limit.least, of.least), max(limit.ulps, of.ulps)
        reason = limit.reason or of.reason
        limit = replace(limit, ulps=ulps, worst=of.worst, own=2, least=least, overflows=True, reason=reason)
    if dtype == "float64":
        ulps, least = max(limit.ulps, 2.0**12), max(limit.least, 2.0**-1000)
        limit = replace(limit, ulps=ulps, least=least, reason=limit.reason or DOUBLES)
    of_special, sums = sample.endswith("special gradients"), limit.share >= SUM.share and limit.spreads
    lost = (
        (operation in _LOST and kind != "usual")
        or (operation in _OPEN and of_special)
        or (operation in _LEFT and sample.endswith(("special gradients", "huge gradients")))
        or (operation == "lax.igammac" and sample == "float64 special")  # JAX gives 1, not 0, of the parameter 2^-1022
        or (operation.startswith("jnp.histogram") and kind == "tiny")  # edges below 2^-126 are 0
        or (sums and (kind == "tiny" or of_special))  # small numbers of a group count as 0
        or (".linalg." in operation and kind == "special")  # which number is a pivot
        or (".linalg." in operation and kind == "huge" and dtype == "float64")  # where JAX's own overflow
        or (operation == "scipy.linalg.lu_solve" and kind == "huge")  # no digit is right: factors of no matrix
    )
    halves = dtype == "float16" or operation == "lax.convert_element_type"  # which converts to float16, too
    return replace(limit, narrow=halves, compared=limit.compared and not lost)


_COMPOSITIONS = """
    jnp.histogram jnp.histogram_bin_edges jnp.histogram2d jnp.histogramdd
    jnp.logaddexp jnp.logaddexp2 jnp.sinc jnp.i0 nn.gelu nn.silu nn.swish nn.mish nn.log1mexp
    nn.squareplus nn.sparse_sigmoid special.erfcx special.beta special.betaln special.boxcox special.boxcox1p special.comb
    special.dawsn special.exp1 special.expi special.expn special.factorial special.gamma
    special.kl_div special.rel_entr special.log_ndtr special.logit special.ndtr special.ndtri special.poch special.spence
"""
_GROUPS = [
    # near a zero of the function the error is absolute
    (
        replace(FUNCTION, least=2.0**-40, overflows=True, spreads=True),
        """
        lax.digamma?float64 special.digamma?float64 lax.polygamma?float64 special.polygamma?float64 lax.lgamma?float64
        special.gammaln?float64 special.loggamma?float64
    """,
    ),
    # left of 0 JAX's own polygamma and gradients of digamma have wrong digits
    (
        replace(FUNCTION, overflows=True),
        "lax.digamma lax.pow lax.zeta jnp.pow jnp.power jnp.float_power special.digamma special.zeta",
    ),
    (replace(FUNCTION, overflows=True, spreads=True), "lax.polygamma special.polygamma"),
    # products in another order, of which some overflow
    (
        replace(FUNCTION, overflows=True, spreads=True, ulps=8),
        "lax.cumprod jnp.cumprod jnp.cumulative_prod jnp.nancumprod lax.reduce_prod jnp.prod jnp.nanprod",
    ),
    # x / (x^2 + y^2), of squares that underflow
    (replace(FUNCTION, share=2.0**-50), "lax.atan2$ jnp.atan2$ jnp.arctan2$"),
    # 0 / 0, where the largest number is NaN, and 0 to a power below 0 times 0: XLA may drop such a product
    (
        replace(FUNCTION, spreads=True),
        """
        jnp.amax$ jnp.amin$ jnp.max$ jnp.min$ jnp.nanmax$ jnp.nanmin$ jnp.ptp$ jnp.histogram$ jnp.histogram2d$ jnp.histogramdd$
        jnp.histogram_bin_edges$ lax.reduce_max$ lax.reduce_min$ lax.pow$ jnp.pow$ jnp.power$ jnp.float_power$
    """,
    ),
    # 1 / sqrt(1 - x^2), where x^2 is rounded, without fused operations
    (
        replace(FUNCTION, share=2.0**-10),
        """
        lax.acos$ lax.acosh$ lax.asin$ lax.atanh$ jnp.acos$ jnp.acosh$ jnp.asin$ jnp.atanh$ jnp.arccos$ jnp.arccosh$ jnp.arcsin$ jnp.arctanh$
    """,
    ),
    # of numbers that cancel
    (replace(SUM, share=2.0**-18), "jnp.sum"),
    # a place among 96 numbers is rounded
    (replace(FUNCTION, share=2.0**-16), "jnp.percentile$ jnp.quantile$ jnp.nanpercentile$ jnp.nanquantile$"),
    # n x zeta, where zeta is below 2^-126
    (replace(FUNCTION, least=2.0**-90, spreads=True), "lax.zeta$ special.zeta$"),
    (replace(FUNCTION, spreads=True, own=2), "lax.digamma$ special.digamma$"),
    (replace(FUNCTION, least=2.0**-10, own=2), "jnp.sinc$ special.sici$"),  # of x / pi, times pi
    # NaN beside 0 and infinity, see docs/reference/functions.md
    (
        replace(FUNCTION, least=2.0**-40, own=2, spreads=True),
        "lax.igamma lax.igammac special.gammainc special.gammaincc",
    ),
    (replace(FUNCTION, least=2.0**-20, own=2), "lax.betainc special.betainc"),
    (
        PRODUCT,
        """
        lax.batch_matmul lax.conv lax.conv_general_dilated lax.conv_general_dilated_local lax.conv_transpose lax.dot
        lax.conv_general_dilated_patches lax.conv_with_general_padding lax.dot_general lax.ragged_dot lax.ragged_dot_general
        jnp.dot jnp.einsum jnp.inner jnp.kron jnp.matmul jnp.matvec jnp.outer jnp.tensordot jnp.vdot jnp.vecdot jnp.vecmat
        jnp.convolve jnp.correlate jnp.polydiv jnp.polyfit jnp.corrcoef jnp.cov jnp.polymul jnp.polyval jnp.cross
        jnp.linalg.cross jnp.linalg.matmul jnp.linalg.matrix_power jnp.linalg.multi_dot jnp.linalg.outer jnp.linalg.tensordot
        jnp.linalg.vecdot special.owens_t nn.dot_product_attention image.resize image.scale_and_translate
    """,
    ),
    (
        SUM,
        """
        lax.cumsum lax.reduce_sum lax.reduce_window lax.scatter_add lax.scatter_sub lax.scatter_max$ lax.scatter_min$ lax.cumlogsumexp
        jnp.mean jnp.nansum jnp.nanmean jnp.cumsum jnp.nancumsum jnp.cumulative_sum jnp.average jnp.trace
        jnp.std jnp.var jnp.nanstd jnp.nanvar jnp.trapezoid jnp.linalg.trace jnp.linalg.norm jnp.linalg.vector_norm
        jnp.linalg.matrix_norm ops.segment_sum jnp.pad jnp.polyadd jnp.polysub jnp.unwrap nn.standardize nn.softmax nn.log_softmax nn.logmeanexp nn.logsumexp
        special.softmax special.log_softmax special.multigammaln
    """,
    ),
    # gradients of vectors whose sign is open
    (RANDOM, "*.linalg.eigh$ *.linalg.svd$"),
    # with float64 other numbers are drawn
    (replace(PRODUCT, native=True), "random.multivariate_normal"),
    (Limit(ulps=2.0**8, least=2.0**-20, native=True, reason=FORMULA), "random.*"),
    # squares of what is left, which is nothing
    (replace(PRODUCT, share=2.0**-6, least=2.0**-20), "jnp.linalg.lstsq"),
    # several products of factors
    (replace(PRODUCT, share=2.0**-6, signed=False, spreads=True, overflows=True), "*.linalg.*"),
    (replace(_COMPOSED, least=2.0**-20), "special.sici"),  # zero of a difference
    (_DOUBLE, _COMPOSITIONS.replace("\n", " ").replace(" ", "?float64 ")),
    (_COMPOSED, _COMPOSITIONS),
]
_ORDER = sorted(
    ((name, limit) for limit, names in _GROUPS for name in names.split()),
    key=lambda each: (not each[0].endswith("$"), not each[0].endswith("float64")),
)
_PATTERNS = [(compiled(translate(name)).match, limit) for name, limit in _ORDER]
