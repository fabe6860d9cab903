"""Primitives that are the same on every device as JAX has them.

XLA's options see to it that each operation rounds for itself: see options.py.
"""

STRUCTURE = """
    jit closed_call call core_map remat2 remat_opt custom_jvp_call custom_vjp_call custom_vmap_call custom_lin
    custom_linear_solve linear_call composite scan while cond run_state shard_map mpmd_map stage
    name tie stop_gradient optimization_barrier dce_sink create_token after_all debug_callback debug_print
    inspect_sharding check shape_assertion dim_as_value dimension_size platform_index
    sharding_constraint layout_constraint with_memory_space_constraint reshard pvary vary_unreduced_cast_p
    reduced_vary_cast_p axis_index device_put copy create_linear pin unpin empty empty2 multiple_of
    random_seed random_bits random_split random_fold_in random_wrap random_unwrap random_clone random_gamma
    threefry4x32 philox2x32 philox4x32 iota_2x32_shape
    todense bcoo_todense bcoo_fromdense bcoo_extract bcoo_transpose bcoo_sort_indices bcoo_sum_duplicates
    bcoo_dot_general_sampled bcoo_spdot_general bcsr_todense bcsr_fromdense bcsr_extract
"""
"""Primitives that call, order or place others; random numbers are integers."""

MOVES = """
    broadcast_in_dim broadcast_to reshape transpose rev slice dynamic_slice dynamic_update_slice concatenate pad
    squeeze split stack unstack tile gather select_n iota bitcast_convert_type convert_element_type
    real imag complex conj to_edtype from_edtype
    ppermute all_to_all all_gather all_gather_invariant all_gather_reduced pbroadcast psend precv ragged_all_to_all
"""

CHOICES = """
    max min clamp sort top_k approx_top_k argmax argmin cummax cummin reduce_max reduce_min reduce_and reduce_or
    reduce_xor reduce_window_max reduce_window_min scatter scatter-max scatter-min scatter-mul pmax pmin
    eq ne lt le gt ge eq_to lt_to le_to is_finite and or xor not
"""
"""Primitives that compare and choose; JAX's rules of some call others, as `argmax` calls `reduce`."""

ARITHMETIC = """
    add add_any sub mul div neg abs sign sqrt square integer_pow reciprocal floor ceil round rem nextafter
    reduce_precision clz population_count shift_left shift_right_arithmetic shift_right_logical mulhi threefry2x32
"""
"""One operation of IEEE 754, or a product of them in one order."""

WHOLE = """
    lu_pivots_to_permutation reduce_window ragged_dot_general select_and_scatter
"""
"""Primitives of others' arithmetic, which are exact where all numbers are integers."""


PARTS = "add add_any sub neg eq ne scatter"
"""Primitives of complex numbers that are one operation for each part."""


def _names(*texts: str) -> frozenset[str]:
    return frozenset(name.replace("-", "_") for text in texts for name in text.split())


CALLS = _names(STRUCTURE)
MOVING = _names(MOVES)
OF_PARTS = _names(PARTS)
CHOOSES = _names(CHOICES)
INTEGERS = _names(WHOLE)
EXACT = _names(STRUCTURE, MOVES, CHOICES, ARITHMETIC)
