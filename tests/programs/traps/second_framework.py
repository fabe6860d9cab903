"""Trains with one framework after others were imported in the same process, and tells which switches leaked.

second_framework.py TASK WORKSPACE [MODULE ...]: the last line is the fingerprint of 20 steps of TASK
second_framework.py leaks: for each framework's switch, what the others then say of theirs
"""

import importlib
import json
import os
import sys

import numpy as np


def said() -> dict[str, object]:
    """What each library says of itself."""
    import torch
    from tensorflow.python.framework import config

    return {
        "torch": torch.are_deterministic_algorithms_enabled(),
        "tensorflow": config.is_op_determinism_enabled(),
        "variables": deciding(),
        "numpy's generator": np.random.get_state(legacy=False)["state"]["key"][0],
        "numpy's denormals": keeps_denormals(),
    }


def deciding() -> set[str]:
    """The environment variables that steer a framework."""
    return {
        name for name in os.environ if name.startswith(("TF_", "TF2_", "XLA_", "JAX_", "TORCH_", "CUBLAS_", "OMP_"))
    }


def keeps_denormals() -> bool:
    return bool(np.float32(1e-40) * np.float32(0.5) > 0)


def leaks() -> dict[str, list[str]]:
    """What changed in `said` by importing, and then by each switch."""
    denormals, variables = keeps_denormals(), deciding()
    import jax
    import keras
    import tensorflow as tf
    import torch

    changed = {"import": [*(deciding() - variables), *([] if denormals == keeps_denormals() else ["denormals"])]}
    switches = {
        "torch.use_deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True),
        "torch.manual_seed": lambda: torch.manual_seed(1),
        "tf.config.experimental.enable_op_determinism": tf.config.experimental.enable_op_determinism,
        "tf.random.set_seed": lambda: tf.random.set_seed(1),
        "keras.utils.set_random_seed": lambda: keras.utils.set_random_seed(1),
        "jax_default_matmul_precision": lambda: jax.config.update("jax_default_matmul_precision", "highest"),
        "torch.set_flush_denormal": lambda: torch.set_flush_denormal(True),
    }
    for name, switch in switches.items():
        earlier = said()
        switch()
        later = said()
        changed[name] = [key for key in earlier if earlier[key] != later[key]]
    return changed


if sys.argv[1] == "leaks":
    print(json.dumps(leaks()))
else:
    from repro.__main__ import main

    task, workspace, *others = sys.argv[1:]
    for other in others:
        importlib.import_module(other)
    sys.argv = sys.argv[:1]
    sys.exit(main([task, f"--workspace={workspace}", "params.max_steps=20"]))
