"""Limits of PyTorch's operations, where they are not functions of one or two numbers, or say why they are wider."""

from dataclasses import replace

from programs.fuzz.limit import FUNCTION, MEMORY, PRODUCT, RANDOM, SEVERAL, SUM, TRANSFORM

_GROUPS = {
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
        lu_solve pinverse triangular_solve linalg.matrix_sqrth ormqr lu_unpack geqrf linalg.lstsq
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
    TRANSFORM: """
        fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn fft.rfft fft.rfft2 fft.rfftn fft.irfft fft.irfft2 fft.irfftn
        fft.hfft fft.hfft2 fft.hfftn fft.ihfft fft.ihfft2 fft.ihfftn stft istft
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
LIMITS = {name: limit for limit, names in _GROUPS.items() for name in names.split()}
LIMITS |= {
    # differences of products of numbers up to 9, which have 13 bits
    f"{name} gradients": replace(limit, least=2.0**-9)
    for name, limit in LIMITS.items()
    if limit.share >= PRODUCT.share
}
LIMITS |= {
    # PyTorch's float64, to which they are compared, has fewer bits there: pi x is rounded, 1 + erf x and x - tanh x cancel,
    # 1 / 6 is a number of float32, and gamma is reflected
    **{
        name: replace(FUNCTION, least=2.0**-50, overflows=True)
        for name in ("sinc", "special.ndtr", "nn.functional.gelu", "nn.functional.tanhshrink float64", "tanh float64")
    },
    "nn.functional.hardsigmoid float64": replace(FUNCTION, share=2.0**-23),
    # PyTorch's float64 errs by up to 281 units there, beside mpmath, ours by 74; and near a pole by its distance from it
    "digamma float64": replace(FUNCTION, ulps=2.0**10, squares=True),
    "lgamma float64 gradients": replace(FUNCTION, ulps=2.0**10, squares=True),
    # exp(x^2 / 2 + log_ndtr x), of numbers that cancel to the logarithm of about |x|
    "special.log_ndtr gradients": replace(FUNCTION, squares=True),
    # at -infinity PyTorch's is NaN, and at negative whole numbers, which are poles, it is finite: sin(pi x) is not 0 there
    **{
        name: replace(FUNCTION, overflows=True, poles=True)
        for name in ("digamma gradients", "polygamma", "special.polygamma")
    },
    # beside mpmath ours errs by 7e-16; PyTorch's by 5e-10 at 1, as its series ends early, and by 0.6 left of 0
    "digamma float64 gradients": replace(FUNCTION, compared=False),
    **{
        f"{name}_n_{n} float64": replace(FUNCTION, ulps=2.0**23, squares=True, overflows=True, poles=True)
        for name in ("polygamma polygamma", "special.polygamma special_polygamma")
        for n in range(5)
    },
    # NaN of NaN, also beside 0 and infinity, see docs/reference/functions.md; PyTorch's tails have the error of 1
    **{name: replace(FUNCTION, least=2.0**-40, spreads=True) for name in ("igamma", "igammac")},
    # beside mpmath ours errs by 2e-15 of the waves' size (tests/programs/bessel_errors.py); PyTorch's y1 by 1e-7 at 6, and
    # all four by the rounding of x - pi / 4 where x is large
    **{f"special.bessel_{name} float64": replace(FUNCTION, compared=False) for name in ("j0", "j1", "y0")},
    "special.bessel_y1": replace(FUNCTION, compared=False),
    # where x is near a large parameter PyTorch's errs by 1e-10, ours by 1e-13, see there
    "igamma float64 forward": replace(FUNCTION, ulps=2.0**21, least=2.0**-40, spreads=True),
    # sums of digamma of numbers around 0, in which infinities of both signs meet
    "mvlgamma gradients": replace(SUM, spreads=True, overflows=True),
    # 2 x erfcx x - 2 / sqrt pi, which cancel
    "special.erfcx gradients": replace(FUNCTION, least=2.0**-22),
    # ours errs by 1e-13, see docs/reference/functions.md
    "special.erfcx float64": replace(FUNCTION, ulps=2.0**9),
    "special.erfcx float64 gradients": replace(FUNCTION, ulps=2.0**10, least=2.0**-22),
    # which of equal numbers
    "topk gradients": replace(FUNCTION, ordered=False),
    # the sign of NaN, which PyTorch's conversions to bfloat16 change
    "copysign bfloat16": replace(FUNCTION, signed=False),
    # PyTorch's formulas, of numbers that cancel: i0e - i1e / x, cos x - sinc x
    **{f"special.{name} gradients": replace(FUNCTION, least=2.0**-20) for name in ("i0e", "i1", "i1e")},
    "special.i1e bfloat16 gradients": replace(FUNCTION, least=2.0**-8),
    "special.i1e float16 gradients": replace(FUNCTION, least=2.0**-11),
    # exp(y^2 / 2) multiplies the error of y by y^2
    "special.ndtri gradients": replace(FUNCTION, ulps=8),
    "special.ndtri float64 gradients": replace(FUNCTION, ulps=2.0**16),
    "sinc gradients": replace(FUNCTION, share=2.0**-11),
    "nn.functional.interpolate linear float64": replace(
        SUM, share=2.0**-28, single=True, reason="places that PyTorch rounds to float32"
    ),
    "logsumexp forward": replace(SUM, spreads=False),
    # logarithms in halves
    "logcumsumexp": PRODUCT,
    "logcumsumexp bfloat16 gradients": replace(PRODUCT, share=2.0**-4),
    "cumprod gradients": replace(SUM, share=2.0**-18),
    "logit": replace(FUNCTION, ulps=8, reason="1 - eps is rounded before it is compared"),
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
