"""Memory of a dense array: its dtype, its shape and its bytes, read in place."""

import functools
import sys
from typing import Any, NamedTuple, Optional


class Memory(NamedTuple):
    """An array as it is hashed."""

    dtype: str
    shape: Any
    content: Any  # has the buffer protocol, and holds the array


def plain(value: Any) -> Optional[Memory]:
    """The memory of a tensor or array that can be read as it is; None of any other value, and where reading fails."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    try:
        if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
            return of_tensor(value) if _is_plain_tensor(torch, value) else None
        if numpy is None or not (hasattr(value, "shape") and hasattr(value, "dtype")):
            return None
        array = value if isinstance(value, numpy.ndarray) else to_numpy(value)
        return of_array(array) if type(array) is numpy.ndarray and not array.dtype.hasobject else None
    except Exception:
        return None  # whoever asked hashes it in another way, and reports why that fails


def _is_plain_tensor(torch: Any, tensor: Any) -> bool:
    """True for a tensor of the CPU whose memory is its values in C order."""
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.is_contiguous()
        and not (tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and not tensor._is_zerotensor()
    )


def check(tensor: Any) -> None:
    """ValueError if values of a tensor lie beyond its memory, which was freed."""
    if tensor.numel():
        _check_length(tensor, 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride())))


def _check_length(tensor: Any, length: int) -> None:
    if (tensor.storage_offset() + length) * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError("its memory was freed")


def of_tensor(tensor: Any) -> Memory:
    """The memory of a tensor of the CPU in C order. ValueError where it has none."""
    length = tensor.numel()
    if not length:
        return Memory(_name(tensor.dtype), tensor.shape, b"")
    _check_length(tensor, length)
    size, address = length * tensor.element_size(), tensor.data_ptr()
    if not address:
        raise ValueError("it has no memory")
    content = _bytes_type(size).from_address(address)
    content.owner = tensor
    return Memory(_name(tensor.dtype), tensor.shape, content)


@functools.lru_cache(maxsize=256)
def _name(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")


@functools.lru_cache(maxsize=4096)
def _bytes_type(size: int) -> Any:
    """The type of so many bytes: to make one takes as long as to hash 20 KB."""
    import ctypes  # PyTorch needs it, but not every Python has it

    return ctypes.c_char * size


def of_array(array: Any) -> Memory:
    """The memory of a NumPy array of numbers, under the name that NumPy gives its dtype."""
    numpy = sys.modules["numpy"]
    dense = numpy.ascontiguousarray(array)
    if not dense.dtype.isnative:
        dense = dense.astype(dense.dtype.newbyteorder("="))
    name = dense.dtype.name if dense.dtype.names is None else repr(dense.dtype.descr)
    return Memory(name, array.shape, dense.reshape(-1).view(numpy.uint8).data if dense.size else b"")


def to_numpy(value: Any) -> Any:
    """The NumPy array of a number, an array or a variable of any framework."""
    content = getattr(value, "value", value)  # TensorFlow's variables have a method of this name
    value = key_data(value if callable(content) else content)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return sys.modules["numpy"].asarray(value.numpy() if hasattr(value, "numpy") else value)


def is_spread(value: Any) -> bool:
    """True for an array of JAX of which other processes have parts, so that this one cannot read it as a whole."""
    return not getattr(value, "is_fully_addressable", True) and not getattr(value, "is_fully_replicated", True)


def key_data(value: Any) -> Any:
    """The numbers of a typed JAX key, which is no array to NumPy; anything else as it is."""
    jax = sys.modules.get("jax")
    if jax is not None and str(getattr(value, "dtype", "")).startswith("key<"):
        return jax.random.key_data(value)
    return value
