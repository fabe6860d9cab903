"""Recorded facts that differ, likely causes first.

The table says which fact can change bits, and why.
"""

import fnmatch
from dataclasses import dataclass
from typing import Any

from repro.text import MOST_NAMES

# What experiment.json holds, most likely cause of other bits first, and why it can be one. A fact that fits no pattern
# decides nothing, or follows from another one.
REASONS = (
    ("config.params.seed", "other weights and batches"),
    ("framework.framework", "frameworks add in different orders"),
    ("framework.device", "a GPU adds in another order than a CPU"),
    ("config.params.numerics", "other arithmetic"),
    ("portable_numerics.*", "portable numerics use a different arithmetic from PyTorch's own"),
    ("framework.device_name", "kernels are chosen by the GPU's model"),
    ("gpu.*.mig", "a part of a GPU has fewer multiprocessors, and sums are split among those"),
    ("framework.multiprocessors", "sums are split among multiprocessors"),
    ("config.params.ranks", "sums are split among ranks"),
    ("threads", "sums are split among threads"),
    ("framework.threads", "sums are split among threads"),
    ("config.params.threads", "sums are split among threads"),
    ("framework.version", "kernels change between versions"),
    ("versions.torch", "kernels change between versions"),
    ("versions.tensorflow", "kernels change between versions"),
    ("versions.jaxlib", "kernels and the compiler change between versions"),
    ("versions.jax", "the compiled program changes between versions"),
    ("cpu.architecture", "another instruction set, and other kernels"),
    ("framework.instruction_set", "wider vectors split a sum into more parts"),
    ("cpu.instruction_set", "wider vectors split a sum into more parts"),
    ("config.environment.*", "this variable steers the framework or a library below it"),
    ("environment.*", "this variable steers the framework or a library below it"),
    ("cpu.vendor", "libraries choose kernels by vendor"),
    ("cpu.model", "libraries choose kernels by the CPU's model, its caches included"),
    ("framework.cud*", "kernels change between versions"),
    ("versions.nvidia-*", "kernels change between versions"),
    ("gpu.*.driver", "the driver compiles what a library ships as PTX"),
    ("versions.*", "a package that the run uses"),
    ("thread_pools.*", "a mathematical library, its version or its threads"),
    ("cpu.usable", "a library may size its thread pool, or its blocks, by the number of cores"),
    ("config.params.num_workers", "the loader"),
    ("container.*", "another C library or Python may come with the container"),
    ("scripts.*", "another version of the command's own files"),
    ("source.*", "another version of the code"),
    ("config.params.resume", "one run was resumed"),
    ("sha256.data.*", "other data"),
    ("sha256.*", "other batches or initial weights"),
)
UNRELATED = (
    "sha256.final_weights",
    "environment.PYTHONPATH",
    "environment.PYTHONNOUSERSITE",
    "environment.JAX_COMPILATION_CACHE_DIR",
    "environment.JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES",
    "environment.JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "source.dirty",
)


@dataclass(frozen=True)
class Cause:
    """A recorded fact in which two runs differ."""

    fact: str
    a: Any
    b: Any
    why: str


def causes(a: dict[str, Any], b: dict[str, Any]) -> list[Cause]:
    """The facts of two experiment.json in which they differ, most likely cause first."""
    ours, theirs = _flat(a), _flat(b)
    result = []
    for fact in sorted(ours.keys() | theirs.keys()):
        if ours.get(fact) == theirs.get(fact) or fact in UNRELATED:
            continue
        rank = next((i for i, (pattern, _) in enumerate(REASONS) if fnmatch.fnmatchcase(fact, pattern)), None)
        if rank is not None:
            result.append((rank, fact))
    return [Cause(fact, ours.get(fact), theirs.get(fact), REASONS[rank][1]) for rank, fact in sorted(result)]


def besides_the_container(a: dict[str, Any], b: dict[str, Any]) -> str:
    """The first few facts that differ, but for the container itself, as the end of a sentence."""
    others = [cause for cause in causes(a, b) if not cause.fact.startswith("container.")]
    named = ", ".join(f"{cause.fact}: {cause.a} and {cause.b}" for cause in others[:MOST_NAMES])
    return f"; recorded facts that differ: {named}" if others else "; no other recorded fact differs"


def _flat(tree: Any, path: str = "") -> dict[str, Any]:
    """The leaves of nested dicts and lists by their path: `framework.threads`, `gpu.0.model`."""
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    else:
        return {path: tree}
    flat: dict[str, Any] = {}
    for key, value in items:
        flat |= _flat(value, f"{path}.{key}" if path else str(key))
    return flat
