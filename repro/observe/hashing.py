"""One SHA-256 for one array: of the line `<dtype> <shape>\\n` (as in repro.fingerprint) and its bytes in C order.

What is no array is hashed as text after the line `<type> \\n`: whole numbers in decimal, floats in hexadecimal, strings
and bytes as they are, the states of generators as generators.py writes them. The bytes are the machine's own, which are
little-endian wherever these frameworks run.
"""

import dataclasses
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

DEPTH = 32  # of nested containers; below it somebody has a circle

keep_in: Optional[str] = None  # with --keep, the folder for the bytes of all that is hashed


def digest(dtype: str, shape: Any, content: Any) -> str:
    """The hash of what has the buffer protocol; with --keep, a file of that name gets the bytes that are hashed."""
    head = f"{dtype} {','.join(str(int(size)) for size in shape)}\n".encode()
    sha = hashlib.sha256(head)
    sha.update(content)
    name = sha.hexdigest()
    if keep_in is not None:
        _keep(keep_in, name, head, content)
    return name


def _keep(folder: str, name: str, head: bytes, content: Any) -> None:
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "wb") as file:
        file.write(head)
        file.write(content)
    os.replace(beside, path)


def text(kind: str, content: str) -> str:
    return digest(kind, (), content.encode("utf-8", "surrogatepass"))


def of_tensor(tensor: Any) -> str:
    """The hash of a tensor's values, of this rank's shard of a distributed one; a sparse one's indices and values."""
    import ctypes  # PyTorch needs it, but not every Python has it

    if hasattr(tensor, "_local_tensor"):
        tensor = tensor._local_tensor
    tensor = tensor.detach()
    if str(tensor.layout) == "torch.sparse_coo":
        parts = of_tensor(tensor._indices()) + of_tensor(tensor._values())
        return text("sparse", parts)
    plain = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    size = plain.numel() * plain.element_size()
    content = (ctypes.c_char * size).from_address(plain.data_ptr()) if size else b""
    return digest(str(plain.dtype).replace("torch.", ""), plain.shape, content)


def of_numpy(array: Any) -> str:
    """The hash of a NumPy array of numbers, of the name that NumPy gives its dtype."""
    numpy = sys.modules["numpy"]
    plain = numpy.ascontiguousarray(array)
    return digest(plain.dtype.name, array.shape, plain.reshape(-1).view(numpy.uint8).data if plain.size else b"")


def of_objects(array: Any) -> Optional[str]:
    """The hash of a NumPy array of strings or other objects; None if one of them has none, but only an address."""
    codes = [of_scalar(value) for value in array.reshape(-1).tolist()]
    return None if None in codes else text("object", repr((array.shape, codes)))


def of_scalar(value: Any) -> Optional[str]:
    """The hash of a number, a string, bytes or None; None if it is something else."""
    if value is None or isinstance(value, (bool, int)):
        return text(type(value).__name__, str(value))
    if isinstance(value, float):
        return text("float", value.hex())
    if isinstance(value, str):
        return text("str", value)
    if isinstance(value, (bytes, bytearray)):
        return digest("bytes", (), value)
    return None


def of_leaf(value: Any) -> Optional[str]:
    """The hash of an array of any framework, or of a scalar; None for what is neither."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return of_tensor(value)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return of_array(numpy.asarray(value))
    found = of_scalar(value)
    if found is None and numpy is not None and hasattr(value, "shape") and hasattr(value, "dtype"):
        return of_array(plain(value))
    return found


def of_array(array: Any) -> Optional[str]:
    return of_objects(array) if array.dtype.hasobject else of_numpy(array)


def plain(value: Any) -> Any:
    """The NumPy array of a number, an array or a variable of any framework."""
    inner = key_data(getattr(value, "value", value)) if not callable(getattr(value, "value", None)) else value
    if hasattr(inner, "detach"):
        inner = inner.detach().cpu()
    return sys.modules["numpy"].asarray(inner.numpy() if hasattr(inner, "numpy") else inner)


def key_data(value: Any) -> Any:
    """The numbers of a typed JAX key, which is no array to NumPy; anything else as it is."""
    jax = sys.modules.get("jax")
    if jax is not None and str(getattr(value, "dtype", "")).startswith("key<"):
        return jax.random.key_data(value)
    return value


def leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each leaf of dicts, lists, tuples, modules and dataclasses, under its path: `0.image`, `layers.1.weight`."""
    if depth > DEPTH:
        return
    inside = _inside(value)
    if inside is None:
        yield name or "value", value
        return
    for key, below in inside:
        yield from leaves(below, f"{name}.{key}" if name else str(key), depth + 1)


def _inside(value: Any) -> Optional[Any]:
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
        return [(getattr(weight, "path", place), weight) for place, weight in enumerate(value.weights)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def of_tree(value: Any, name: str, unknown: Callable[[str], None]) -> dict[str, str]:
    """The hash of each leaf; `unknown` hears of the types that have none."""
    found: dict[str, str] = {}
    for path, leaf in leaves(value, name):
        code = of_leaf(leaf)
        if code is None:
            unknown(f"{path} is of type {type(leaf).__name__}, which is not hashed")
        else:
            found[path] = code
    return found
