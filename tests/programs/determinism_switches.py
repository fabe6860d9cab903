"""A framework's own account of its determinism switches: first in fast numerics, then in deterministic ones."""

import importlib
import json
import os
import sys

from repro.trainers.loop import environment
from repro.trainers.loop.config import Config, Params


def pytorch() -> dict[str, bool]:
    import torch

    return {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "autotuning": torch.backends.cudnn.benchmark,
        "tf32": torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32,
    }


def tensorflow() -> dict[str, bool]:
    import tensorflow as tf
    from tensorflow.python.framework import config

    return {
        "deterministic": config.is_op_determinism_enabled(),
        "warn_only": False,
        "autotuning": not config.is_op_determinism_enabled(),
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
    }


def jax() -> dict[str, bool]:
    import jax

    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "deterministic": "--xla_gpu_deterministic_ops=true" in flags,
        "warn_only": False,
        "autotuning": "--xla_gpu_autotune_level=0" not in flags,
        "tf32": jax.config.jax_default_matmul_precision != "highest",
    }


if __name__ == "__main__":
    framework = sys.argv[1]
    for numerics in ("fast", "deterministic"):  # TensorFlow's switch cannot be turned back
        params = Params(numerics=numerics)
        environment.apply(framework, Config(params=params))
        importlib.import_module(f"mnist_{framework}").set_determinism(params)
        print(json.dumps(globals()[framework]()))
