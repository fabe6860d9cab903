"""Environment variables that can change the bits of a training.

run.sh renames each of them to REPRO_IGNORED_<NAME> before Python starts, so that no trainer reads it.
"""

import os
from collections.abc import Mapping

IGNORED = "REPRO_IGNORED_"

# Prefixes of their names.
DECIDING = (
    *("TORCH_", "PYTORCH_", "ATEN_", "TF_", "KERAS_", "JAX_", "XLA_", "PJRT_", "PYTHON"),
    *("NPY_", "GLIBC_TUNABLES", "MKL_", "ONEDNN_", "DNNL_", "OPENBLAS_", "OMP_", "GOMP_", "KMP_"),
    *("CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "NVIDIA_"),
)


def deciding(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that are set, by default in this process, and can change bits."""
    given = os.environ if variables is None else variables
    return {name: value for name, value in sorted(given.items()) if name.startswith(DECIDING)}


def ignored() -> dict[str, str]:
    """The variables of the caller's shell that run.sh removed."""
    named = {name.removeprefix(IGNORED): value for name, value in os.environ.items() if name.startswith(IGNORED)}
    return dict(sorted(named.items()))
