"""The limit of each call, by framework."""

from dataclasses import replace

from programs.fuzz import limits_jax, limits_pytorch, limits_tensorflow
from programs.fuzz.limit import DOUBLE, DOUBLES, FORMULA, FUNCTION, SUM, Limit


def limit_of(framework: str, operation: str, sample: str = "") -> Limit:
    """The limit of a call, of which "OPERATION TYPE gradients" says more than its parts.

    A variant, as "norm fro", has the limit of its operation. A gradient by the framework's own formula may have twice the
    framework's own error; and it is a sum where the arguments of a function of numbers have different shapes. Random
    calls are not compared, nor gradients of groups with NaN, nor sums of numbers below 2^-100, which count as 0.
    """
    if framework == "jax":
        return limits_jax.limit_of(operation, sample)
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
    if framework == "tensorflow":
        limit = limits_tensorflow.limit_of(operation, sample)
    else:
        limits = limits_pytorch.LIMITS
        limit = next((limits[name] for name in names if name in limits), FUNCTION)
    if dtype == "float64" and not limit.single:
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
    return replace(limit, own=2, reason=limit.reason or FORMULA)


def _beside_its_own(limit: Limit) -> Limit:
    """A function of float64 beside the framework's, which has an error, too: docs/reference/functions.md has those of ours."""
    return replace(limit, ulps=max(limit.ulps, 32), least=max(limit.least, 2.0**-49), reason=limit.reason or DOUBLES)
