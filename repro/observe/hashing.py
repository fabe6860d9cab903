"""SHA-256 of arrays, scalars and text.

An array's is that of the line `<dtype> <shape>\\n` (as in repro.fingerprint) and its bytes in C order. What is no
array is hashed as text after the line `<type> \\n`: whole numbers in decimal, floats in hexadecimal, strings and bytes
as they are, the states of generators as generators.py writes them. The bytes are the machine's own, which are
little-endian wherever these frameworks run.
"""

import dataclasses
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from . import recorder

MAX_DEPTH = 32  # of nested containers; below it somebody has a circle

content_folder: Optional[str] = None  # with --keep, where the bytes of all that is hashed are stored


def hash_bytes(dtype: str, shape: Any, content: Any) -> str:
    """The hash of what has the buffer protocol; with --keep, a file of that name gets the bytes that are hashed."""
    head = f"{dtype} {','.join(str(int(size)) for size in shape)}\n".encode()
    sha = hashlib.sha256(head)
    sha.update(content)
    name = sha.hexdigest()
    if content_folder is not None:
        _store(content_folder, name, head, content)
    return name


def _store(folder: str, name: str, head: bytes, content: Any) -> None:
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    unfinished = f"{path}.{os.getpid()}"
    with open(unfinished, "wb") as file:
        file.write(head)
        file.write(content)
    os.replace(unfinished, path)


def hash_text(kind: str, content: str) -> str:
    return hash_bytes(kind, (), content.encode("utf-8", "surrogatepass"))


def hash_tensor(tensor: Any) -> str:
    """The hash of a PyTorch tensor: of this rank's shard of a distributed one; of a sparse one's indices and values."""
    import ctypes  # PyTorch needs it, but not every Python has it

    tensor = getattr(tensor, "_local_tensor", tensor).detach()
    if str(tensor.layout) == "torch.sparse_coo":
        return hash_text("sparse", hash_tensor(tensor._indices()) + hash_tensor(tensor._values()))
    dense = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    size = dense.numel() * dense.element_size()
    content = (ctypes.c_char * size).from_address(dense.data_ptr()) if size else b""
    return hash_bytes(str(dense.dtype).replace("torch.", ""), dense.shape, content)


def hash_array(array: Any) -> Optional[str]:
    """The hash of a NumPy array; None of one with objects that have none."""
    return _hash_objects(array) if array.dtype.hasobject else hash_numbers(array)


def hash_numbers(array: Any) -> str:
    """The hash of a NumPy array of numbers, under the name that NumPy gives its dtype."""
    numpy = sys.modules["numpy"]
    dense = numpy.ascontiguousarray(array)
    return hash_bytes(dense.dtype.name, array.shape, dense.reshape(-1).view(numpy.uint8).data if dense.size else b"")


def _hash_objects(array: Any) -> Optional[str]:
    """The hash of strings and other objects; None if one of them has none, but only an address."""
    codes = [hash_scalar(value) for value in array.reshape(-1).tolist()]
    return None if None in codes else hash_text("object", repr((array.shape, codes)))


def hash_scalar(value: Any) -> Optional[str]:
    """The hash of a number, a string, bytes or None; None if it is something else."""
    if value is None or isinstance(value, (bool, int)):
        return hash_text(type(value).__name__, str(value))
    if isinstance(value, float):
        return hash_text("float", value.hex())
    if isinstance(value, str):
        return hash_text("str", value)
    if isinstance(value, (bytes, bytearray)):
        return hash_bytes("bytes", (), value)
    return None


def hash_leaf(value: Any) -> Optional[str]:
    """The hash of an array of any framework, or of a scalar; None for what is neither."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return hash_tensor(value)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return hash_array(numpy.asarray(value))
    code = hash_scalar(value)
    if code is None and numpy is not None and hasattr(value, "shape") and hasattr(value, "dtype"):
        return hash_array(to_numpy(value))
    return code


def hash_or_note(value: Any, name: str) -> Optional[str]:
    """The hash of a leaf. A type that has none is a note: its text may hold an address, which no run has again."""
    code = hash_leaf(value)
    if code is None:
        recorder.note(f"{name} is of type {type(value).__name__}, which is not hashed")
    return code


def hash_tree(value: Any, name: str) -> dict[str, str]:
    """The hash of each leaf by its path."""
    codes = {path: hash_or_note(leaf, path) for path, leaf in leaves(value, name)}
    return {path: code for path, code in codes.items() if code is not None}


def to_numpy(value: Any) -> Any:
    """The NumPy array of a number, an array or a variable of any framework."""
    content = getattr(value, "value", value)  # TensorFlow's variables have a method of this name
    value = key_data(value if callable(content) else content)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return sys.modules["numpy"].asarray(value.numpy() if hasattr(value, "numpy") else value)


def key_data(value: Any) -> Any:
    """The numbers of a typed JAX key, which is no array to NumPy; anything else as it is."""
    jax = sys.modules.get("jax")
    if jax is not None and str(getattr(value, "dtype", "")).startswith("key<"):
        return jax.random.key_data(value)
    return value


def leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each leaf of dicts, lists, tuples, modules and dataclasses, under its path: `0.image`, `layers.1.weight`."""
    if depth > MAX_DEPTH:
        return
    children = _children(value)
    if children is None:
        yield name or "value", value
        return
    for key, child in children:
        yield from leaves(child, f"{name}.{key}" if name else str(key), depth + 1)


def _children(value: Any) -> Optional[Any]:
    """Pairs of key and value of what contains others; None of a leaf."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return None
    state_dict = getattr(value, "state_dict", None)
    if callable(state_dict) and not isinstance(value, type):
        return state_dict().items()
    if isinstance(getattr(value, "weights", None), list):  # a model of Keras
        return [(getattr(weight, "path", index), weight) for index, weight in enumerate(value.weights)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None
