"""Operations that PyTorch computes exactly, by name.

Views, copies, comparisons, choices, integers and what is one IEEE 754 operation for each element: these have one result on
every device, and PyTorch's own kernels run. A name stands for all its overloads, in place and with out=, too.
"""

MEMORY = """
    _chunk_cat _copy_from _copy_from_and_resize _efficientzerotensor _fw_primal _fw_primal_copy _lazy_clone _make_dual
    _make_dual_copy _neg_view _neg_view_copy _new_zeros_with_same_feature_meta _pin_memory _reshape_alias
    _reshape_alias_copy _reshape_copy _resize_output _stack _unsafe_view alias alias_copy as_strided
    as_strided_copy block_diag cat channel_shuffle clone constant_pad_nd copy detach detach_copy
    diag_embed diagonal diagonal_backward diagonal_copy empty empty_like empty_permuted empty_strided
    expand expand_copy eye fill flip full full_like lift lift_fresh lift_fresh_copy narrow_copy native_channel_shuffle
    new_empty new_empty_strided new_full new_ones new_zeros ones ones_like permute permute_copy pixel_shuffle
    pixel_unshuffle repeat repeat_interleave resize resize_as roll rot90 scalar_tensor select select_backward select_copy
    set shallow_copy_data slice slice_backward slice_copy slice_inverse split split_copy
    split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack t t_copy transpose transpose_copy unbind unbind_copy
    unfold unfold_copy unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_copy values values_copy view view_copy
    view_as_real view_as_real_copy zero zeros zeros_like _foreach_clone _foreach_copy _foreach_zero _pack_padded_sequence
    tril triu tril_indices triu_indices im2col reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
    replication_pad2d replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    _to_dense _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _sparse_sum_backward
    copy_sparse_to_sparse resize_as_sparse sparse_resize sparse_resize_and_clear empty_quantized
    _empty_affine_quantized _empty_per_channel_affine_quantized
"""
"""Operations that move numbers, or make room for them."""

INDICES = """
    _index_put_impl _unsafe_index _unsafe_masked_index gather index index_fill index_select masked_fill
    masked_scatter masked_scatter_backward masked_select nonzero nonzero_static scatter take embedding take_along_dim _unique2_ints
"""
"""Operations that read and write by index, without adding."""

CHOICES = """
    _aminmax all any argmax argmin bucketize count_nonzero cummax cummin _cummax_helper _cummin_helper eq equal ge gt
    heaviside isin isinf isnan isneginf isposinf le logical_and logical_not logical_or logical_xor lt max min ne
    searchsorted threshold threshold_backward unique_consecutive unique_dim unique_dim_consecutive where
    hardtanh_backward max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d
    fractional_max_pool2d fractional_max_pool3d _is_all_true _is_any_true nan_to_num
"""
"""Comparisons, and the numbers that they choose; the first of equals."""

SINGLE = """
    _foreach_abs _foreach_ceil _foreach_floor _foreach_frac _foreach_mul _foreach_neg _foreach_reciprocal _foreach_round
    _foreach_sign _foreach_trunc ceil floor frac frexp neg nextafter positive round
    sign trunc leaky_relu leaky_relu_backward softshrink_backward hardshrink hardshrink_backward
    _prelu_kernel _prelu_kernel_backward native_dropout_backward_none _amp_update_scale
    _amp_foreach_non_finite_check_and_unscale deg2rad rad2deg
    _conj _conj_copy _conj_physical conj_physical view_as_complex view_as_complex_copy complex
"""
"""One IEEE 754 operation for each element."""

INTEGERS = """
    __ilshift__ __irshift__ __lshift__ __rshift__ bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor gcd lcm hash_tensor random randint randint_like randperm _philox_key_fold_in
    _philox_key_split _philox_randint range arange linspace logspace
"""
"""Integers; and factories, which fill what others make: see random.py and factories.py for that."""

FILLED = """
    rand rand_like randn randn_like normal normal_functional rrelu_with_noise_functional uniform bernoulli
    exponential geometric cauchy log_normal
"""
"""Random numbers that the forms in place make, which are defined."""

STATE = """
    _assert_async _assert_scalar _assert_tensor_metadata _functional_assert_async _functional_assert_scalar
    _functional_sym_constrain_range _functional_sym_constrain_range_for_size _has_same_storage_numel
    _linalg_check_errors _local_scalar_dense _make_dep_token _print is_pinned is_same_size is_set_to
    sym_constrain_range sym_constrain_range_for_size from_file sym_size sym_stride sym_numel sym_storage_offset
    _cudnn_init_dropout_state _nested_tensor_size _nested_tensor_strides _nested_tensor_storage_offsets
    dense_dim sparse_dim is_coalesced record_stream _version allclose _is_zerotensor _test_optional_intlist
    _coalesced indices crow_indices col_indices ccol_indices row_indices _values _indices _dimI _dimV _nnz is_leaf
    _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors _sparse_compressed_tensor_with_dims
    sparse_coo_tensor sparse_compressed_tensor _validate_compressed_sparse_indices set_data output_nr
    _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets
    _nested_get_ragged_idx qscheme q_scale q_zero_point q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points int_repr inductor_prims::inductor_reserve_rng_state
"""
"""Operations that ask about tensors, and checks."""

GUARDED = "abs angle reciprocal square sgn"
"""One IEEE 754 operation for real numbers; of complex ones they are several, which are refused."""

WINDOWS = "bartlett_window blackman_window hamming_window hann_window fft_fftfreq fft_rfftfreq"
"""Numbers that PyTorch makes of others, though it has registered them like kernels."""

RAW = """
    fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
    fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16
    fbgemm_pack_quantized_matrix choose_qparams_optimized _choose_qparams_per_tensor _wrapped_linear_prepack
    _wrapped_quantized_linear_prepacked
"""
"""Operations that compute by themselves, though PyTorch has registered them as made of others: they are refused."""

EXACT = frozenset(" ".join((MEMORY, INDICES, CHOICES, SINGLE, INTEGERS, FILLED, STATE)).split())
REAL = frozenset(GUARDED.split())
NAMESPACES = frozenset(
    (
        "prims",
        "profiler",
        "_test",
        "rngprims",
        "debugprims",
        "inductor",
        "_inductor_test",
        "export",
        "debug_mode_ops",
        "c10d",
        "_c10d_functional",
        "_c10d_functional_autograd",
        "_dtensor",
        "fsdp",
        "coor",
        "quantization",
    )
)
"""Namespaces whose operations are made of others, or move numbers."""
KERNELS = frozenset(("_native",))
"""Namespaces of kernels that PyTorch has registered from Python."""


def base(name: str) -> str:
    """The name without its overload and the underscore of an operation in place."""
    return name.partition(".")[0].removesuffix("_")


def is_exact(name: str) -> bool:
    """True if PyTorch computes an operation exactly; that of another library has its namespace, too."""
    return base(name) in EXACT


def is_guarded(name: str) -> bool:
    """True if an operation is exact for real numbers alone."""
    return base(name) in REAL


def is_window(name: str) -> bool:
    """True if PyTorch composes an operation of ATen of others, though it is registered like a kernel."""
    return base(name) in WINDOWS.split()


def is_raw(name: str) -> bool:
    """True if an operation of ATen does its own arithmetic, though it is registered as composed of others."""
    return base(name) in RAW.split()
