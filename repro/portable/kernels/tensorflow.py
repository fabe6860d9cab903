"""Kernels as operations of TensorFlow, on a CPU."""

import ctypes
import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import tensorflow as tf

from repro.portable import kernels
from repro.portable.kernels.machine import Kernel, nothing
from repro.portable.kernels.xla import handler

MODULE = """
func.func public @main({operands}) -> {result} {{
  %y = stablehlo.custom_call @{name}({names}) {{
    api_version = 4 : i32, backend_config = {{}}{more}
  }} : ({types}) -> {result}
  return %y : {result}
}}
"""
ALIAS = (
    ", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
    "operand_tuple_indices = []>]"
)
VERSION = 9
"""The version of XlaCallModule that takes such a module."""
TYPES = {"int16": "i16", "float32": "f32", "float64": "f64"}
log = logging.getLogger(__name__)

_registered: set[str] = set()


@cache
def possible() -> bool:
    """True if TensorFlow computes on a CPU that has int16 kernels, and calls them."""
    if not kernels.paired() or tf.config.list_logical_devices("GPU"):
        return False

    def compute(x: tf.Tensor) -> tf.Tensor:
        return materialized(x) if compiled() else x + 1

    try:
        return bool(tf.function(compute, jit_compile=True)(tf.ones(1))[0] == 1)
    except Exception as error:  # of whatever kind: other versions of XLA may have another interface
        reason = str(error).strip().split("\n")[-1].strip()
        log.warning("portable: TensorFlow %s does not call kernels compiled here: %s", tf.__version__, reason)
        return False


def compiled() -> bool:
    """True if the function that is being traced is for XLA."""
    from tensorflow.python.framework import ops  # no other part of TensorFlow knows; possible() finds out
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph())


def call(made: Kernel, dtype: str, shape: tuple[int, ...], *arrays: tf.Tensor) -> tf.Tensor:
    """The result of kernels for tensors."""
    return _called(made, dtype, shape, arrays)


def materialized(x: tf.Tensor) -> tf.Tensor:
    """Hold a tensor in memory, so that XLA does not compute it again for each use."""
    return _called(nothing(), x.dtype.name, tuple(x.shape), [x], ALIAS)


def _called(made: Kernel, dtype: str, shape: tuple[int, ...], arrays: Sequence[tf.Tensor], more: str = "") -> tf.Tensor:
    from tensorflow.compiler.tf2xla.python import xla

    known = handler(made)
    if known.name not in _registered:
        _register(known.name, known.address)
        _registered.add(known.name)
    types = [_type(array.dtype.name, array.shape) for array in arrays]
    names = [f"%x{index}" for index in range(len(arrays))]
    module = MODULE.format(
        name=known.name,
        names=", ".join(names),
        types=", ".join(types),
        result=_type(dtype, shape),
        more=more,
        operands=", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True)),
    )
    return xla.call_module(
        arrays, version=VERSION, module=module, Tout=[tf.as_dtype(dtype)], Sout=[shape], platforms=["CPU"]
    )[0]


def _type(dtype: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{TYPES[dtype]}>"


# --- as xla/ffi/api/c_api.h has it ------------------------------------------------------------------------------------


class _Text(ctypes.Structure):
    _fields_ = (("pointer", ctypes.c_char_p), ("length", ctypes.c_size_t))


class _Registration(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("name", _Text),
        ("platform", _Text),
        ("instantiate", ctypes.c_void_p),
        ("prepare", ctypes.c_void_p),
        ("initialize", ctypes.c_void_p),
        ("execute", ctypes.c_void_p),
        ("traits", ctypes.c_uint32),
    )


REGISTER = 72
"""The place in the interface of the function that registers."""


@cache
def _interface() -> int:
    """The address of XLA's foreign function interface."""
    get = ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / "libtensorflow_framework.so.2")).XLA_FFI_GetApi
    get.restype = ctypes.c_void_p
    return get()


def _register(name: str, address: int) -> None:
    text = name.encode()
    given = _Registration(name=_Text(text, len(text)), platform=_Text(b"Host", 4), execute=address)
    given.size = _Registration.traits.offset + 4
    function = ctypes.c_size_t.from_address(_interface() + REGISTER).value
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(ctypes.addressof(given))
    if error:
        raise RuntimeError(f"XLA rejected the function {name}")
