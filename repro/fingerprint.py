"""SHA-256 of named arrays, and of a model's weights.

Equal fingerprints mean that every bit is equal.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from repro.observe import hashing, memory
from repro.observe.memory import Memory


def fingerprint(arrays: Mapping[str, np.ndarray]) -> str:
    """`sha256:<64 hex digits>` of the arrays' names, dtypes, shapes and values.

    For each name in sorted order, the line `<name> <dtype> <shape>\\n` (dtype as NumPy spells it, shape as decimals
    separated by commas) is hashed, then the values in C order as little-endian bytes. The sign of a zero counts, and
    the payload of a NaN.
    """
    parts = ((name, np.ascontiguousarray(arrays[name]), arrays[name].shape) for name in sorted(arrays))
    little = ((name, part.astype(part.dtype.newbyteorder("<"), copy=False), shape) for name, part, shape in parts)
    return _digest((name, Memory(part.dtype.name, shape, part.tobytes())) for name, part, shape in little)


def weights_fingerprint(model: Any) -> str:
    """The fingerprint of a model as it is in memory: fingerprint() of its weights, under the framework's own names.

    `model` is a module of PyTorch (all of its `state_dict()`, so buffers too) or a model of Keras (its `weights`), or any
    nesting of dicts, lists, tuples and dataclasses with arrays, as JAX's pytrees: the name of an array is then its path,
    as `layers.0.kernel`. Arrays have any shape and dtype, and lie on any device. A wrapper such as DDP or
    `torch.compile` puts a word before each name, and so makes another fingerprint: give the model in it.

    ValueError if there is no array, or one is not dense or not as a whole in this process: gather what is sharded first.
    """
    memories: dict[str, Memory] = {}
    for path, leaf in hashing.leaves(model):
        name, number = path, 2
        while name in memories:  # Keras gives two layers one path
            name, number = f"{path} {number}", number + 1
        memories[name] = _memory(name, leaf)
    if not memories:
        raise ValueError(f"weights_fingerprint: {type(model).__name__} has no weights")
    return _digest((name, memories[name]) for name in sorted(memories))


def _memory(name: str, leaf: Any) -> Memory:
    try:
        if hasattr(leaf, "resolve_neg"):  # a tensor of PyTorch
            leaf = leaf.detach().cpu().resolve_conj().resolve_neg().contiguous()
        dense = memory.plain(leaf)
    except Exception:  # as of a sparse tensor
        dense = None
    if dense is None:
        raise ValueError(
            f"weights_fingerprint: {name}, of type {type(leaf).__name__}, is no dense array that is whole in this process"
        )
    return dense


def _digest(parts: Iterator[tuple[str, Memory]]) -> str:
    digest = hashlib.sha256()
    for name, part in parts:
        digest.update(f"{name} {part.dtype} {','.join(str(size) for size in part.shape)}\n".encode())
        digest.update(part.content)
    return f"sha256:{digest.hexdigest()}"
