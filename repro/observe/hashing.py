"""SHA-256 of arrays, scalars and text.

An array's is that of the line `<dtype> <shape>\\n` (as in repro.fingerprint) and its bytes in C order. A tensor that is
no such array (sparse, quantized, nested, a wrapper) is text: the hashes of its parts and all else that makes it. What is no
array is hashed as text after the line `<type> \\n`: whole numbers in decimal, floats in hexadecimal, strings and bytes
as they are, the states of generators as generators.py writes them. The bytes are the machine's own, which are
little-endian wherever these frameworks run.
"""

import dataclasses
import functools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

from . import contents, digests, memory, recorder, shards
from .memory import Memory
from .recorder import Arrays

MAX_DEPTH = 32  # levels of nested containers; below them there must be a cycle
SHORT = 100  # characters of a text whose hash is remembered
COMPOSITE = ("SparseTensor", "RaggedTensor", "IndexedSlices")  # types of TensorFlow that consist of several arrays

SPREAD = "JAX: arrays of which each process holds a part are hashed only in compiled steps of Optax and Equinox"

content_folder: Optional[str] = None  # with --keep, the folder for the bytes of all that is hashed


def hash_bytes(dtype: str, shape: Any, content: Any) -> str:
    """The hash of what has the buffer protocol; with --keep, a file of that name gets the bytes that are hashed."""
    return hash_memories([Memory(dtype, shape, content)])[0]


def hash_memories(memories: list[Memory]) -> list[str]:
    """The hashes of several arrays, which are made at the same time."""
    heads = [_head(one.dtype, tuple(one.shape)) for one in memories]
    codes = digests.digests([(head, one.content) for head, one in zip(heads, memories)])
    for code, head, one in zip(codes, heads, memories):
        contents.look(code, one.dtype, one.content)
        if content_folder is not None:
            _store(content_folder, code, head, one.content)
    return codes


@functools.lru_cache(maxsize=4096)
def _head(dtype: str, shape: tuple[Any, ...]) -> bytes:
    return f"{dtype} {','.join(str(int(size)) for size in shape)}\n".encode()


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
    if len(content) < SHORT and content_folder is None:
        return _hash_short_text(kind, content)
    return hash_bytes(kind, (), content.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=4096)
def _hash_short_text(kind: str, content: str) -> str:
    """The hash of a text that may come again in each step, such as an option of an optimizer."""
    return hash_bytes(kind, (), content.encode("utf-8", "surrogatepass"))


def hash_tensor(tensor: Any) -> str:
    """The hash of all that makes a PyTorch tensor what it is; of a distributed one, of this rank's part.

    ValueError, or one of PyTorch's own errors, where its values cannot be read.
    """
    torch = sys.modules["torch"]
    tensor = getattr(tensor, "_local_tensor", tensor)
    if getattr(type(tensor), "__torch_dispatch__", None) not in (None, torch.Tensor.__torch_dispatch__):
        return _hash_wrapper(tensor)
    with torch._C.DisableTorchFunctionSubclass():
        return _hash_layout(torch, tensor.detach())


def _hash_wrapper(tensor: Any) -> str:
    """Hash a subclass with a dispatch of its own. Its address may be 0, as its values are in other tensors."""
    kind = type(tensor).__name__
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        raise ValueError(f"{kind} has no __tensor_flatten__, which would say where its values are")
    names, context = flatten()
    parts = [f"{name}={hash_tensor(getattr(tensor, name))}" for name in names]
    parts += [f"{path}={_hash_described(value)}" for path, value in leaves(context, "context")]
    shape = [int(size) if isinstance(size, int) else None for size in tensor.shape]  # a ragged size is in the parts
    return hash_text("wrapper", repr((kind, str(tensor.dtype), shape, parts)))


def _hash_described(value: Any) -> str:
    """The hash of a leaf, or of its text, as of a dtype: no text that holds an address, which no run has again."""
    code = hash_leaf(value)
    if code is not None:
        return code
    text = repr(value)
    if " at 0x" in text:
        raise ValueError(f"it holds a {type(value).__name__}, which is not hashed")
    return hash_text(type(value).__name__, text)


def _hash_layout(torch: Any, tensor: Any) -> str:
    """Hash a tensor without a dispatch of its own: a dense one by itself, others by their parts and layout."""
    layout = str(tensor.layout).replace("torch.", "")
    if tensor.is_meta:
        parts = ["meta"]
    elif tensor.is_quantized:
        parts = [hash_tensor(tensor.int_repr()), str(tensor.qscheme()), *_quantization(tensor)]
    elif layout == "sparse_coo":
        parts = [hash_tensor(tensor._indices()), hash_tensor(tensor._values())]
    elif layout in ("sparse_csr", "sparse_bsr"):
        parts = [hash_tensor(part) for part in (tensor.crow_indices(), tensor.col_indices(), tensor.values())]
    elif layout in ("sparse_csc", "sparse_bsc"):
        parts = [hash_tensor(part) for part in (tensor.ccol_indices(), tensor.row_indices(), tensor.values())]
    elif tensor.is_nested:
        return hash_text("nested", repr((str(tensor.dtype), [hash_tensor(part) for part in tensor.unbind()])))
    elif layout == "_mkldnn":
        parts = [hash_tensor(tensor.to_dense())]
    elif layout == "strided":
        return _hash_memory(torch, tensor)
    else:
        raise ValueError(f"the layout {layout} is not known")
    return hash_text(layout, repr((str(tensor.dtype), tuple(tensor.shape), parts)))


def _quantization(tensor: Any) -> list[str]:
    """Scales, zero points and their axis."""
    if "per_channel" not in str(tensor.qscheme()):
        return [float(tensor.q_scale()).hex(), str(tensor.q_zero_point())]
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return [hash_tensor(scales), hash_tensor(zeros), str(tensor.q_per_channel_axis())]


def _hash_memory(torch: Any, tensor: Any) -> str:
    """Hash a dense tensor. Its values are read in place, never beyond its memory."""
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.device.type in ("cpu", "cuda"):
        memory.check(tensor)
    dense = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    return hash_memories([memory.of_tensor(dense)])[0]


def hash_array(array: Any) -> Optional[str]:
    """The hash of a NumPy array; None of one with objects that have none."""
    if array.dtype.hasobject:
        return _hash_objects(array)
    if _is_masked(array):
        return hash_text("masked", repr([hash_numbers(array.data), hash_numbers(array.mask | False)]))
    return hash_numbers(array)


def _is_masked(value: Any) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def hash_numbers(array: Any) -> str:
    """The hash of a NumPy array of numbers, under the name that NumPy gives its dtype."""
    return hash_memories([memory.of_array(array)])[0]


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
        return hash_array(value if _is_masked(value) else numpy.asarray(value))
    code = hash_scalar(value)
    if code is None and numpy is not None and hasattr(value, "shape") and hasattr(value, "dtype"):
        return hash_array(memory.to_numpy(value))
    return code


def hash_or_note(value: Any, name: str, required: bool = False) -> Optional[str]:
    """The hash of a leaf; None where it has none. An array that has none makes the step incomplete.

    `required`: so does a leaf of any type but a function; a batch or an option may be something else, and no state.
    """
    try:
        if memory.is_spread(value):
            recorder.unseen(SPREAD)
            return None
        code = hash_leaf(value)
    except Exception as error:
        recorder.unseen(f"{name}, of type {type(value).__name__}, is not hashed: {error}")
        return None
    if code is None:
        is_state = (required and not callable(value)) or (hasattr(value, "shape") and hasattr(value, "dtype"))
        say = recorder.unseen if is_state else recorder.note
        say(f"{name} is of type {type(value).__name__}, which is not hashed")
    return code


def hash_tree(value: Any, name: str, required: bool = False) -> dict[str, str]:
    """The hash of each leaf by its path."""
    return hash_named(leaves(value, name), required=required)


def hash_named(named: Iterable[tuple[str, Any]], note: str = "{}", required: bool = False) -> dict[str, str]:
    """The hash of each leaf that has one, by its name; `note` says how notes call it."""
    arrays = [("", name, leaf) for name, leaf in named]
    return hash_arrays(arrays, note.format("{1}"), required).get("", {})


def hash_arrays(arrays: Arrays, note: str = "{1} ({0})", required: bool = False) -> dict[str, dict[str, str]]:
    """The hash of each leaf that has one, by its channel and name; `note` says how notes call it.

    What ranks share is gathered first, so its hash is that of the whole tensor.
    """
    order = {array[:2]: place for place, array in enumerate(arrays)}
    hashed = [one for portion in shards.whole(arrays) for one in _hash_portion(portion, note, required)]
    hashes: dict[str, dict[str, str]] = {}
    for channel, name, code in sorted(hashed, key=lambda one: order.get(one[:2], len(order))):
        hashes.setdefault(channel, {})[name] = code
    return hashes


def _hash_portion(arrays: Arrays, note: str, required: bool) -> Iterator[tuple[str, str, str]]:
    memories = [memory.plain(leaf) for _, _, leaf in arrays]
    try:
        codes = iter(hash_memories([one for one in memories if one is not None]))
    except Exception:  # each by itself, for a note that names it
        memories, codes = [None] * len(arrays), iter(())
    for (channel, name, leaf), one in zip(arrays, memories):
        code = next(codes) if one is not None else hash_or_note(leaf, note.format(channel, name), required)
        if code is not None:
            yield channel, name, code


def leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yields each leaf of dicts, lists, tuples, modules and dataclasses, and its path: `0.image`, `layers.1.weight`."""
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
    if type(value).__name__ in COMPOSITE and type(value).__module__.startswith("tensorflow."):
        return enumerate(sys.modules["tensorflow"].nest.flatten(value, expand_composites=True))
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
