"""Definitions without a row in golden/operations.txt, and why, by the beginnings of their names."""

RANKS = "collectives, which need several processes: tests/portable/test_mode_ranks.py"
CHOICE = "chooses a way, and gives no numbers; what it chooses has rows"
REPLACED = "a replacement of a composite, which is not counted; it has a row"
WRITTEN = "writes fractions into integers: tests/portable/test_mode_inputs.py"
SIGN = "the framework's own, but for NaN: tests/portable/test_fuzz.py"
EXCEPTIONS = {
    "pytorch": {
        **dict.fromkeys(("as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter"), WRITTEN),
        "fill.Tensor": WRITTEN,
        "copysign": SIGN,
        "signbit": SIGN,
        "max_unpool3d": "has the definition of max_unpool2d, which has a row",
        "c10d::": RANKS,
        "_foreach_": "lists of tensors call the operation of each tensor; some are in the table",
        "_use_cudnn_ctc_loss": CHOICE,
        "_use_miopen_ctc_loss": CHOICE,
        "_fused_sdp_choice": CHOICE,
        "_embedding_bag_sparse_backward": "the rows of the dense gradient, which has a row, before they are added",
        "embedding_renorm": "PyTorch calls its form in place, which has a row",
        "mul": "the framework's own exact product, which is not counted; it has a row",
        "selu": "PyTorch makes it of elu; it has a row",
        "rms_norm": REPLACED,
        "linalg_det": REPLACED,
        "special_ndtr": "erfc, which has a row",
        "linalg_slogdet": REPLACED,
    },
    "tensorflow": {
        "CollectiveReduce": RANKS,
        "SegmentProdV2": "as SegmentSumV2",
        "SegmentSumV2": "TensorFlow has it in XLA's graphs alone; its definition is SegmentSum's, which has a row",
    },
    "jax": {"psum": RANKS, "reduce_scatter": "sums over devices: tests/portable/test_jax_ways.py"},
}


def unknown(framework: str, names: set[str]) -> list[str]:
    """The names that no exception covers."""
    return sorted(name for name in names if not name.startswith(tuple(EXCEPTIONS[framework])))
