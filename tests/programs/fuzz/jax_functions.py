"""JAX's functions with the arguments that each is called with: one row for each function that the modules have.

An argument is a letter: x, y, z any numbers; p, q positive ones; c, d also at most 1,000; u, w from 0 to 1; i, j integers from 0 to 4; b truth
values; k a random key; v a vector, A, B, C square matrices, S a symmetric positive one, L a lower triangle. Letters before | have the
sample's shape, the others shapes of their own. A function whose call needs more than arrays is in CALLS of jax_lax.py or
jax_numpy.py beside this file.
"""

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

Modules = dict[str, Any]
MODULES: Modules = {
    "lax": lax,
    "lax.linalg": lax.linalg,
    "jnp": jnp,
    "jnp.linalg": jnp.linalg,
    "nn": jax.nn,
    "special": jax.scipy.special,
    "scipy.linalg": jax.scipy.linalg,
    "random": jax.random,
    "ops": jax.ops,
    "image": jax.image,
}

FUNCTIONS: dict[str, dict[str, str]] = {
    "lax": {
        "x": """abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp
            exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt square tan
            tanh""",
        "x y": "add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub",
        "p q": "igamma igammac igamma_grad_a random_gamma_grad zeta",
        "c d u": "betainc",
        "x y z": "clamp",
    },
    "jnp": {
        "x": """abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil cos cosh
            deg2rad degrees exp exp2 expm1 fabs floor frexp i0 isfinite isinf isnan isneginf isposinf log log10 log1p
            log2 logical_not modf nan_to_num negative positive rad2deg radians reciprocal rint round sign signbit sin sinc
            sinh spacing sqrt square tan tanh trunc""",
        "x y": """add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater
            greater_equal heaviside hypot isclose less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor
            maximum minimum mod multiply nextafter not_equal pow power remainder subtract true_divide""",
        "x i": "ldexp",
        "x y z": "clip",
    },
    "nn": {
        "x": """celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log1mexp log_sigmoid mish relu
            relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh""",
    },
    "special": {
        "x": """dawsn digamma entr erf erfc erfcx erfinv expit factorial fresnel gamma gammaln gammasgn i0 i0e
            i1 i1e log_ndtr loggamma logit ndtr ndtri sici spence""",
        "x y": "kl_div logsumexp owens_t rel_entr xlog1py xlogy",
        "p q": "beta betaln boxcox boxcox1p comb gammainc gammaincc poch zeta",
        "c d u": "betainc",
    },
}
"""Functions of each element."""

ARRAYS: dict[str, dict[str, str]] = {
    "lax": {
        "x": "cumlogsumexp cummax cummin cumprod cumsum full_like optimization_barrier sort stop_gradient dce_sink",
        "i": "clz population_count bitwise_not",
        "i j": "bitwise_and bitwise_or bitwise_xor mulhi shift_left shift_right_arithmetic shift_right_logical",
        "|A B": "dot batch_matmul",
        "x y": "sort_key_val",
        "b x y": "select",
    },
    "lax.linalg": {"|S": "cholesky eigh", "|A": "lu svd qr qdwh schur hessenberg eig tridiagonal"},
    "jnp": {
        "x": """all any amax amin argmax argmin argsort argwhere around array  asarray atleast_1d atleast_2d atleast_3d
            average ceil copy count_nonzero cumprod cumsum cumulative_prod cumulative_sum diagonal diff ediff1d
            empty_like flatnonzero flip fliplr flipud gradient iscomplex iscomplexobj isreal isrealobj isscalar max mean
            median min nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum
            nanvar ndim nonzero ones_like prod ptp ravel shape size sort squeeze std sum trace transpose trapezoid tril
            triu unique unwrap var zeros_like corrcoef cov matrix_transpose imag real conj conjugate angle rot90
            sort_complex unstack""",
        "i": "bincount bitwise_count bitwise_invert bitwise_not invert",
        "i j": """bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm left_shift
            right_shift""",
        "x y": """allclose append array_equal array_equiv interp intersect1d isin outer setdiff1d setxor1d union1d
            vdot vecdot""",
        "|A": "diag poly diagflat identity",
        "|A B": "dot inner kron matmul matvec tensordot vecmat cross",
        "|v": "roots vander polyder polyint unique_all unique_counts unique_inverse unique_values trim_zeros meshgrid",
        "|v v": "convolve correlate histogram2d polyadd polydiv polymul polysub polyval",
        "b x y": "where",
    },
    "jnp.linalg": {
        "|A": "cond det eig eigvals inv matrix_norm matrix_rank matrix_transpose norm pinv qr slogdet svd svdvals trace",
        "|S": "cholesky eigh eigvalsh",
        "|A B": "lstsq matmul solve tensordot vecdot",
        "|v v": "outer",
        "x": "diagonal vector_norm",
    },
    "nn": {"x": "glu identity log_softmax logmeanexp logsumexp softmax standardize"},
    "special": {"x": "log_softmax softmax", "|p": "exp1 expi", "|p q u": "hyp1f1"},
    "scipy.linalg": {
        "|A": "det expm hessenberg inv lu lu_factor polar qr schur sqrtm svd block_diag",
        "|S": "cholesky eigh cho_factor",
        "|A B": "expm_frechet solve",
        "|A B C": "solve_sylvester",
        "|v": "circulant companion fiedler fiedler_companion hankel toeplitz",
        "|A v": "qr_multiply",
    },
    "random": {
        "k": "split clone key_data",
    },
    "ops": {"x i": "segment_max segment_min segment_prod segment_sum"},
}
"""Functions of whole arrays."""

APART = {
    "lax": """ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike after_all all_gather all_to_all axis_index
        axis_size broadcast_shapes composite cond conv_dimension_numbers conv_general_permutations
        conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple create_token custom_linear_solve custom_root dtype
        empty fori_loop full iota map padtype_to_pads pbroadcast pcast platform_dependent pmax pmean pmin ppermute precv psend
        pshuffle psum psum_scatter pswapaxes ragged_all_to_all reduce_window_shape_tuple rng_uniform scan shape_as_value stage
        switch while_loop with_sharding_constraint broadcasted_iota fft broadcast_to_rank complex conj real imag""",
    "jnp": """apply_along_axis apply_over_axes arange array_split astype bartlett blackman broadcast_arrays broadcast_shapes can_cast
        einsum_path empty eye frombuffer fromfile fromfunction from_dlpack fromiter frompyfunc fromstring full
        get_printoptions array_str array_repr hamming hanning isdtype issubdtype iterable ix_ kaiser load mask_indices
        ones place printoptions promote_types result_type save savez set_printoptions tri
        tril_indices tril_indices_from triu_indices triu_indices_from vectorize zeros diag_indices diag_indices_from
        indices ravel_multi_index unravel_index""",
    "nn": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "random": "PRNGKey key key_dtype key_impl wrap_key_data",
    "scipy.linalg": "dft funm hadamard helmert hilbert invhilbert invpascal leslie pascal rsf2csf convolution_matrix",
    "special": "wofz sph_harm_y",
}
"""Functions without a call here: control flow and collectives, which the mode's own tests have; complex numbers; tables
of constants; and what computes with shapes, types and files."""
