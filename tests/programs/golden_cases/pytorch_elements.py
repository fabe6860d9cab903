"""Operations of golden/operations.txt that PyTorch alone has: elements, products, sums."""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.golden_cases.cases import RIGHT, Case, array, filler

CASES: dict[str, Case] = {}
case = filler(CASES)
aten = torch.ops.aten

PLANE, ROW = array(12, 20), array(20)
REAL, POSITIVE, SHARE = array(240, kind="special"), array(240, kind="positive"), array(240, kind="share")
SIGNAL, IMAGES = array(3, 4, 10), array(2, 4, 5, 6)


# --- elements ---------------------------------------------------------------------------------------------------------

for _name in ("silu", "mish", "hardsigmoid", "hardswish", "relu6", "leaky_relu", "celu", "logsigmoid", "softshrink"):
    case(_name, getattr(F, _name), REAL)
for _name in ("hardtanh", "hardshrink", "tanhshrink", "gelu"):
    case(_name, getattr(F, _name), REAL)
for _name in ("log2", "log10"):
    case(_name, getattr(torch, _name), array(240, kind="half line"))
for _name in ("fmax", "fmin", "hypot", "logaddexp", "logaddexp2", "fmod", "remainder"):
    case(_name, getattr(torch, _name), PLANE, ROW)
case("sinc", torch.sinc, REAL)
case("erfcx", torch.special.erfcx, REAL)
case("mvlgamma", lambda x: torch.mvlgamma(x + 3, 3), POSITIVE)
case("dirichlet_slope", lambda x, a, b: torch._dirichlet_grad(x, a, a + b), SHARE, POSITIVE, POSITIVE, gradient=False)
case("polar", lambda size, angle: torch.view_as_real(torch.polar(size, angle)), PLANE, PLANE)
case("gelu-tanh", partial(F.gelu, approximate="tanh"), REAL)
case("glu", F.glu, PLANE)
case("prelu", F.prelu, PLANE, ROW)
case("rrelu", partial(F.rrelu, training=True), REAL)
case("rrelu-fixed", F.rrelu, REAL)
case("log_ndtr", torch.special.log_ndtr, array(240))
case("entr", torch.special.entr, SHARE)
case("logit", torch.logit, SHARE)
case("logit-eps", partial(torch.logit, eps=0.25), SHARE)
case("powers", lambda x: (x**2, x**3, x**-2, x**0.5, 1.7**x), POSITIVE)
case("ldexp", lambda x: torch.ldexp(x, torch.arange(20) - 9), PLANE, gradient=False)
case("zeta-numbers", lambda x: (torch.special.zeta(2.5, x), torch.special.zeta(x + 1, 2.5)), POSITIVE, gradient=False)
case("xlogy-numbers", lambda x: (torch.xlogy(2.5, x), torch.xlogy(x, 2.5)), POSITIVE)
case("xlog1py-numbers", lambda x: (torch.special.xlog1py(2.5, x), torch.special.xlog1py(x, 2.5)), POSITIVE)
case("relu-in-place", lambda x: torch.relu_(x.clone()), REAL)
case(
    "clamp",
    lambda x: [x.clamp(-0.5, 0.5), x.clamp_min(0.0), x.clamp_max(0.0), F.hardtanh(x.clone(), inplace=True)],
    REAL,
)
case("clamp-tensors", lambda x, a, b: (x.clamp(a, b), torch.clamp_min(x, a), torch.clamp_max(x, b)), PLANE, PLANE, ROW)
case(
    "floor_divide",
    lambda a, b: (torch.floor_divide(a, b), aten.floor_divide.Scalar(a, 0.3)),
    PLANE,
    ROW,
    gradient=False,
)
case("div-floor", partial(torch.div, rounding_mode="floor"), PLANE, ROW)
case("div-number", lambda x: (x / 3, 3 / x), PLANE)
case("remainder-numbers", lambda x: (x.fmod(0.3), x.remainder(0.3), torch.remainder(2.5, x)), PLANE, gradient=False)
case("add-factor", lambda a, b: (torch.add(a, b, alpha=0.3), torch.sub(a, b, alpha=0.3)), PLANE, ROW)
case("rsub", lambda a, b: (torch.rsub(a, b, alpha=0.3), torch.rsub(a, 2.5)), PLANE, ROW)
case("lerp", lambda a, b, w: (torch.lerp(a, b, 0.3), torch.lerp(a, b, w)), PLANE, PLANE, PLANE)
case("addcmul", partial(torch.addcmul, value=0.3), PLANE, PLANE, ROW)
case("addcdiv", partial(torch.addcdiv, value=0.3), PLANE, PLANE, array(20, kind="positive"))
case("dropout", lambda x: F.dropout(x, 0.3), PLANE)
case("dropout-native", lambda x: torch.native_dropout(x, 0.3, True), PLANE)


def integers(x: Tensor) -> list[Tensor]:
    return [(x * 1000).to(dtype) for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64)]


def in_place(a: Tensor, b: Tensor) -> list[Tensor]:
    found = [getattr(a.clone(), name)() for name in ("exp_", "tanh_", "log1p_", "rsqrt_")]
    found += [getattr(a.clone(), name)(b) for name in ("pow_", "xlogy_", "atan2_", "fmod_", "clamp_min_", "sub_")]
    found += [
        a.clone().clamp_(0, 1),
        a.clone().clamp_min_(1.0),
        a.clone().clamp_max_(1.0),
        F.hardtanh_(a.clone(), 0, 1),
    ]
    return [*found, a.clone().add_(b, alpha=0.3), a.clone().div_(b, rounding_mode="floor")]


def out(a: Tensor, b: Tensor) -> list[Tensor]:
    found = [f(a, out=torch.empty(0, dtype=a.dtype)) for f in (torch.exp, torch.tanh)]
    found += [f(a, 1, out=torch.empty(0, dtype=a.dtype)) for f in (torch.sum, torch.mean, torch.var)]
    found += [f(a, b, out=torch.empty_like(a)) for f in (torch.pow, torch.mm, torch.xlogy, torch.add, torch.div)]
    return found + [torch.xlogy(*each, out=torch.empty_like(a)) for each in ((2.5, a), (a, 2.5))]


def lists(a: Tensor, b: Tensor) -> list[Tensor]:
    both, found = ([a, b], [b, a]), []
    for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "lgamma", "norm", "max"):
        found += getattr(torch, f"_foreach_{name}")(both[0])
    for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum"):
        found += getattr(torch, f"_foreach_{name}")(*both)
    found += torch._foreach_add(*both, alpha=0.3) + torch._foreach_lerp(*both, 0.3)
    return [*found, *torch._foreach_addcmul(*both, both[0], 0.3), *torch._foreach_addcdiv(*both, both[0], 0.3)]


case("to-integers", integers, REAL, gradient=False)
case("in-place", in_place, POSITIVE, POSITIVE, gradient=False)
case("out", out, array(12, 12, kind="positive"), array(12, 12, kind="positive"), gradient=False)
case("lists", lists, array(12, 12, kind="positive"), array(12, 12, kind="positive"), gradient=False)

# --- products and sums ------------------------------------------------------------------------------------------------

case("linear", F.linear, array(5, 9), array(4, 9), array(4))
case("linear-batched", F.linear, array(2, 5, 9), array(4, 9), array(4))
case("addmm", partial(torch.addmm, beta=0.3, alpha=0.7), array(4), array(5, 9), array(9, 4))
case("baddbmm", partial(torch.baddbmm, beta=0.3, alpha=0.7), array(2, 5, 4), array(2, 5, 9), array(2, 9, 4))
case("addbmm", partial(torch.addbmm, beta=0.3, alpha=0.7), array(5, 4), array(2, 5, 9), array(2, 9, 4))
case("addmv", partial(torch.addmv, beta=0.3, alpha=0.7), array(5), array(5, 9), array(9))
case("addr", partial(torch.addr, beta=0.3, alpha=0.7), array(5, 4), array(5), array(4))
case("vdot", torch.vdot, ROW, ROW)
case("bilinear-form", F.bilinear, array(5, 3), array(5, 4), array(2, 3, 4), array(2))
case(
    "trilinear",
    lambda a, b, c: aten._trilinear(a, b, c, [2], [0], [1], [1], 0),
    array(3, 4),
    array(4, 5),
    array(3, 5),
    gradient=False,
)
case(
    "grouped_mm",
    lambda a, b: torch._grouped_mm(a.bfloat16(), b.bfloat16(), torch.tensor([3, 8], dtype=torch.int32)).float(),
    array(8, 16),
    array(2, 16, 8),
    gradient=False,
)
case("cross", torch.linalg.cross)
case("trace", torch.trace, array(9, 9))
case("nansum", lambda x: x.nansum(1), PLANE)
case("nanmean", lambda x: x.nanmean(1), PLANE)
case("var_mean", lambda x: torch.var_mean(x, (0,)), PLANE)
case("std_mean", lambda x: torch.std_mean(x, 1, correction=1), PLANE)
case("var-all", torch.var, PLANE)
for _order in (0.5, 1, 3, float("inf")):
    case(f"norm-{_order}", lambda x, order=_order: torch.linalg.vector_norm(x, order, 1), PLANE)
case(
    "norm-forms",
    lambda x: (
        aten.norm(x, 2),
        aten.norm(x, 2, [1]),
        aten.norm(x, 3, dtype=torch.float64),
        aten.norm(x, 2, [1], False, dtype=torch.float64),
    ),
    PLANE,
)
case("dist", torch.dist, PLANE, PLANE)
case("cdist", torch.cdist, array(5, 4), array(6, 4))
case("cdist-1", partial(torch.cdist, p=1.0), array(5, 4), array(6, 4))
case("cdist-infinite", partial(torch.cdist, p=float("inf")), array(5, 4), array(6, 4))
case("cdist-products", lambda a, b: aten._euclidean_dist(a, b), array(30, 4), array(31, 4))
case("pdist", F.pdist, array(6, 4))
case("pdist-1", partial(F.pdist, p=1.0), array(6, 4))
case("renorm", lambda x: torch.renorm(x, 2, 0, 1.0), array(5, 4))
case("amin", lambda x: x.amin(1), PLANE)
case("max-all", lambda x: (x.max(), x.min(), *torch.aminmax(x, dim=1)), PLANE)

# --- linear algebra ---------------------------------------------------------------------------------------------------


def by_factors(x: Tensor, b: Tensor) -> list[Tensor]:
    """Solutions by factors with pivots, and the factors as they are unpacked."""
    factors, pivots = torch.linalg.lu_factor(x)
    solved = [torch.linalg.lu_solve(factors, pivots, b, adjoint=adjoint) for adjoint in (False, True)]
    return [*solved, *torch.lu_unpack(factors, pivots)]


case("spherical_j0", torch.special.spherical_bessel_j0, array(240, kind="special"), gradient=False)
case("modified_bessel_i0", torch.special.modified_bessel_i0, array(240), gradient=False)
case("modified_bessel_i1", torch.special.modified_bessel_i1, array(240), gradient=False)
case("lu", torch.linalg.lu, array(2, 6, 4))
case(
    "lstsq-wide", lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd"), array(2, 4, 6), array(2, 4, 3), gradient=False
)
case("lstsq-residuals", lambda a, b: torch.linalg.lstsq(a, b, driver="gels")[:2], array(2, 6, 4), array(2, 6, 3))
case("pinv", torch.linalg.pinv, array(2, 6, 4))
case("pinv-hermitian", partial(torch.linalg.pinv, hermitian=True), array(2, 6, 6, kind="definite"))
case("matrix_exp", torch.linalg.matrix_exp, array(2, 6, 6))
case("matrix_exp-squared", lambda x: torch.linalg.matrix_exp(8 * x), array(2, 6, 6))
case("lu_solve", by_factors, array(2, 6, 6), RIGHT)
case("solve-right", partial(torch.linalg.solve, left=False), array(2, 6, 6), array(2, 3, 6))
case("cholesky_solve", torch.cholesky_solve, RIGHT, array(2, 6, 6, kind="triangular"))
case("cholesky_inverse", torch.cholesky_inverse, array(2, 6, 6, kind="triangular"))


# --- quantization -----------------------------------------------------------------------------------------------------


def by_channels(x: Tensor) -> list[Tensor]:
    """Steps and zeros of each row; zeros are integers, and fractions."""
    steps = torch.tensor([0.125, 0.1, 0.3, 0.02], device=x.device)
    zeros = torch.tensor([3, -2, 0, 5], dtype=torch.int32, device=x.device)
    quantize = torch.fake_quantize_per_channel_affine
    return [quantize(x, steps, each, 1, -128, 127) for each in (zeros, zeros * 0.75)]


def observed(x: Tensor, symmetric: bool) -> list[Tensor]:
    """Numbers on the grid of a range that follows them, and the range."""
    one, state = torch.ones(1), [torch.full((1,), torch.inf), torch.full((1,), -torch.inf), torch.ones(1)]
    zero = torch.zeros(1, dtype=torch.int32)
    for scale in (1.0, 0.75):
        given = x * scale, one, one, *state, zero, 0.01, -128, 127, -1, False, symmetric
        y = torch.fused_moving_avg_obs_fake_quant(*given)
    return [y, *(each.clone() for each in state), zero.clone()]


STEP, ZERO = torch.tensor(0.03), torch.tensor(7, dtype=torch.int32)
case("fake_quantize", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.03, 7, 0, 255), PLANE)
case("fake_quantize-tensors", lambda x: torch.fake_quantize_per_tensor_affine(x, STEP, ZERO, 0, 255), PLANE)
case("fake_quantize-channels", by_channels, SIGNAL)
case("fake_quantize-observed", partial(observed, symmetric=False), PLANE, floats=("float32",))
case("fake_quantize-symmetric", partial(observed, symmetric=True), PLANE, floats=("float32",))
