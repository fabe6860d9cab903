"""Limits of JAX' functions, where they are not functions of one or two numbers, or say why they are wider."""

from dataclasses import replace

from programs.fuzz.limit import FUNCTION, PRODUCT, SUM, Limit

_UNITS = {"float32": 2.0**-18, "bfloat16": 2.0**-4, "float16": 2.0**-7, "float64": 2.0**-40}
"""Some units in the last place of one: errors of what JAX composes, where numbers of about one cancel."""


def composed(limit: Limit, dtype: str, way: str) -> Limit:
    """Results of float64 are compared with the framework's own, whose functions have errors themselves.

    Gradients are JAX's own formulas, of which many cancel, as 1 - x^2 does: then numbers of about one are what is rounded.
    """
    narrow, ulps = dtype == "float16", {"float64": 2.0**12}.get(dtype, limit.ulps)
    if way == "gradients":
        least = max(limit.least, _UNITS[dtype])
        return replace(limit, ulps=max(ulps, 2.0**10), least=least, overflows=True, narrow=narrow)
    return replace(limit, ulps=ulps, narrow=narrow)


_GROUPS = {
    # left of 0 JAX's own polygamma and gradients of digamma have wrong digits; $: of gradients
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
LIMITS = {name.replace("$", " gradients"): limit for limit, names in _GROUPS.items() for name in names.split()} | {
    f"{name} {dtype}": Limit(least=least, own=2) for name in _COMPOSED.split() for dtype, least in _UNITS.items()
}
# half of the smallest number that XLA does not take for 0 is 0: then expm1 is, and its reciprocal is infinite
LIMITS["nn.log1mexp float64"] = replace(LIMITS["nn.log1mexp float64"], spreads=True)
