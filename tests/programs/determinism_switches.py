"""A framework's own account of its determinism switches, and steps under them: determinism_switches.py FRAMEWORK TIMES.

Two lines of JSON, first in fast numerics, then in deterministic ones; then the number of fingerprints that the same steps
give when they are repeated, with more threads than cores.
"""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from repro.fingerprint import fingerprint
from repro.trainers.loop import environment, randomness
from repro.trainers.loop.config import Config, Params
from repro.trainers.loop.data import Dataset

SAMPLES = 60_000  # too many for the caches: threads then drift apart


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


def fingerprints(framework: str, times: int) -> int:
    """The number of different fingerprints that the same steps give."""
    params = Params(threads=4, device="cpu")
    environment.apply(framework, Config(params=params))
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (SAMPLES, 28, 28)).astype(np.uint8)
    labels = draw.integers(0, 10, SAMPLES).astype(np.int32)
    dataset = Dataset("mnist", images, labels, images, labels, Path(), {})
    trainer = importlib.import_module(f"mnist_{framework}").Trainer(params, dataset)
    batches = draw.integers(0, SAMPLES, (40, 64)).astype(np.int32)
    keep = draw.integers(0, 2, (40, 64, 70)).astype(np.uint8)
    seen = set()
    for _ in range(times):
        trainer.load_state(randomness.initial_state(0, "lenet", "sgd"))
        losses = trainer.steps(batches, keep)
        seen.add(fingerprint(trainer.state() | {"losses": losses}))
    return len(seen)


if __name__ == "__main__":
    framework = sys.argv[1]
    for numerics in ("fast", "deterministic"):  # TensorFlow's switch cannot be turned back
        params = Params(numerics=numerics)
        environment.apply(framework, Config(params=params))
        importlib.import_module(f"mnist_{framework}").set_determinism(params)
        print(json.dumps(globals()[framework]()))
    print(fingerprints(framework, int(sys.argv[2])))
