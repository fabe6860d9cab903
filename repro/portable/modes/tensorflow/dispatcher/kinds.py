"""Types of the numbers that an operation takes, gives or hides."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes, op_def_registry

FLOATS = {types_pb2.DT_HALF, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, types_pb2.DT_BFLOAT16}
INTEGERS = {value for name, value in types_pb2.DataType.items() if name.startswith(("DT_INT", "DT_UINT"))}
COMPLEX = {types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128}
COMPLEX_TYPES = {dtypes.complex64, dtypes.complex128}
QUANTIZED = {value for name, value in types_pb2.DataType.items() if name.startswith(("DT_Q", "DT_FLOAT8", "DT_FLOAT4"))}
HANDLES = {types_pb2.DT_VARIANT, types_pb2.DT_RESOURCE}

FRACTIONAL = {"DecodeJxl", "EuclideanNorm", "RandomPoissonV2", "StatelessRandomPoisson", "StatelessRandomBinomial"}
"""Operations that compute with fractions though their arguments and results are integers."""


@cache
def fixed_types(name: str) -> frozenset[int]:
    """The types of results that no argument has, as of images of bytes that are resized; float32 where an operation
    computes with fractions that are none of its arguments."""
    known = op_def_registry.get(name)
    fractional = name in FRACTIONAL or any(each.type in ("float", "list(float)") for each in known.attr)
    fractions = {types_pb2.DT_FLOAT} if fractional else set()
    return frozenset(fractions | {each.type for each in known.output_arg})


@cache
def hides_types(name: str) -> bool:
    """True if an operation changes what a handle holds and does not say of which type that is."""
    known = op_def_registry.get(name)
    results = {each.type for each in known.output_arg}
    handles = {each.type for each in known.input_arg} & HANDLES
    return bool(handles) and (not results or bool(results & HANDLES)) and not type_attributes(name)


@cache
def type_attributes(name: str) -> tuple[str, ...] | None:
    """The attributes of an operation that are types; None where there is no such operation, as of functions."""
    known = op_def_registry.get(name)
    kinds = ("type", "list(type)")
    return None if known is None else tuple(each.name for each in known.attr if each.type in kinds)


def attribute_types(names: Iterable[str], given: Mapping[str, Any], read: Callable[[Any], Any]) -> set[int]:
    """The types that attributes of these names have; `read` gives one type or a list of them."""
    types: set[int] = set()
    for name in names:
        if name in given:
            value = read(given[name])
            types.update(map(int, value) if isinstance(value, list | tuple) else [int(value)])
    return types
