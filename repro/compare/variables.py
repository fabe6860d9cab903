"""Variables that a rerun takes from a record.

A record may come from anybody. Most of what steers a framework can do more than change bits: name a library that is loaded
(`LD_PRELOAD`, `OMP_TOOL_LIBRARIES`, `CUDA_INJECTION64_PATH`), code that Python runs (`PYTHONPATH`, `PYTHONWARNINGS`), a cache
of programs (`JAX_COMPILATION_CACHE_DIR`), or a file that is written over (`NCCL_DEBUG_FILE`, `--xla_dump_to`). So these are
named one by one, not by how they begin, and none takes a path.
"""

import re
from collections.abc import Mapping

STEERING = {
    *(
        "OMP_NUM_THREADS",
        "OMP_DYNAMIC",
        "OMP_SCHEDULE",
        "OMP_PROC_BIND",
        "OMP_PLACES",
        "OMP_WAIT_POLICY",
        "OMP_THREAD_LIMIT",
    ),
    *("OMP_NESTED", "OMP_MAX_ACTIVE_LEVELS", "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT"),
    *("KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_DETERMINISTIC_REDUCTION", "KMP_FORCE_REDUCTION", "KMP_HW_SUBSET"),
    *("MKL_NUM_THREADS", "MKL_DYNAMIC", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "MKL_DOMAIN_NUM_THREADS"),
    *("MKL_THREADING_LAYER", "MKL_INTERFACE_LAYER", "MKL_DEBUG_CPU_TYPE"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "DNNL_CPU_ISA_HINTS"),
    *("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"),
    *("CUBLAS_WORKSPACE_CONFIG", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION"),
    *("NVIDIA_TF32_OVERRIDE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS"),
    *("NCCL_BUFFSIZE", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"),
    *("NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES"),
    *("PYTHONHASHSEED", "ATEN_CPU_CAPABILITY", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_CUDNN_V8_API_DISABLED"),
    *("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_JIT"),
    *("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "TF_CUDNN_USE_FRONTEND"),
    *("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_FORCE_GPU_ALLOW_GROWTH"),
    *("TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32", "TF_ENABLE_CUDNN_TENSOR_OP_MATH_FP32", "TF_GPU_THREAD_MODE"),
    *("TF_CPP_MIN_LOG_LEVEL", "KERAS_BACKEND", "XLA_FLAGS"),
    *("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_DEFAULT_PRNG_IMPL", "JAX_THREEFRY_PARTITIONABLE"),
    *("JAX_DISABLE_JIT", "JAX_DEFAULT_DTYPE_BITS", "JAX_PLATFORMS", "JAX_PLATFORM_NAME", "JAX_NUM_CPU_DEVICES"),
}
"""The variables that change bits, and do nothing else; of GLIBC_TUNABLES TUNABLES."""

XLA_FLAGS = {
    *("xla_allow_excess_precision", "xla_force_host_platform_device_count", "xla_backend_optimization_level"),
    *("xla_cpu_enable_fast_math", "xla_cpu_fast_math_honor_nans", "xla_cpu_fast_math_honor_infs"),
    *("xla_cpu_fast_math_honor_division", "xla_cpu_fast_math_honor_functions", "xla_cpu_enable_fast_min_max"),
    *("xla_cpu_multi_thread_eigen", "xla_cpu_max_isa", "xla_cpu_use_onednn", "xla_cpu_prefer_vector_width"),
    *("xla_cpu_use_thunk_runtime", "xla_gpu_deterministic_ops", "xla_gpu_exclude_nondeterministic_ops"),
    *("xla_gpu_autotune_level", "xla_gpu_enable_triton_gemm", "xla_gpu_enable_cublaslt", "xla_gpu_graph_level"),
    *(
        "xla_gpu_enable_fast_min_max",
        "xla_gpu_ftz",
        "xla_gpu_cudnn_gemm_fusion_level",
        "xla_gpu_all_reduce_combine_threshold_bytes",
    ),
}
"""The words of XLA_FLAGS of which the same is true; the variable is also taken for the name of a file."""

VALUE = re.compile(r"[\w.,:;=+(){} -]*")  # no path, and nothing that Hydra replaces

TUNABLES = re.compile(r"(glibc\.cpu\.hwcaps=[\w,-]*:?)*")
"""The one word of GLIBC_TUNABLES of which the same is true."""


def taken(recorded: Mapping[str, str]) -> dict[str, str]:
    """The variables that a rerun sets as they were."""
    return {name: value for name, value in recorded.items() if name in STEERING and _harmless(name, value)}


def without(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of this process that a rerun keeps: all but those that a record decides."""
    return {name: value for name, value in variables.items() if name not in STEERING}


def left_out(recorded: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """The names of those that a rerun does not set, and that are not here as they were."""
    set_here = taken(recorded)
    return [name for name in recorded if name not in set_here and recorded[name] != variables.get(name)]


def _harmless(name: str, value: str) -> bool:
    if name == "GLIBC_TUNABLES":  # others control how memory is allocated, or what is loaded
        return TUNABLES.fullmatch(value) is not None
    if name != "XLA_FLAGS":
        return VALUE.fullmatch(value) is not None
    words = [word.partition("=") for word in value.split()]
    return all(
        flag.startswith("--") and flag.removeprefix("--") in XLA_FLAGS and VALUE.fullmatch(setting)
        for flag, _, setting in words
    )
