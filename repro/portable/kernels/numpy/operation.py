"""An operation of TensorFlow's graphs that runs programs, without Python, and asks Python where it has none.

It is registered by TensorFlow's C interface (tensorflow/c/kernels.h, tensorflow/c/ops.h). Its attributes are the address of a
definition's words, and the process that has them there. TensorFlow makes a kernel for each node: the address of the definition, and
of the program that ran last.
"""

import ctypes
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir

from repro.portable.kernels import machine
from repro.portable.kernels.machine import ADDRESS, I32, I64, VOID, entry
from repro.portable.kernels.numpy import node
from repro.portable.kernels.numpy.node import library
from repro.portable.kernels.numpy.workers import WORD, libc, outside

ATTRIBUTES = "Tin: list(type) >= 0", "Tout: list(type)", "definition: int", "process: int"
_names = [ctypes.create_string_buffer(name) for name in (b"definition", b"process")]
PROCESS = secrets.randbits(62)
"""The mark of this process: a graph of another one has addresses of that."""
_elsewhere = ctypes.create_string_buffer(
    b"portable numerics: a graph of another process: graphs of portable numerics run in the process alone that made them"
)
FAILED_PRECONDITION = 9
"""TensorFlow's number of such an error."""


@cache
def register(operation: str, missed: Callable[..., None]) -> Any:
    """Registers the operation by its name, for CPUs; returns what must be kept as long as the process runs.

    `missed` is called where a node has no program: see node.MISSED. RuntimeError where TensorFlow rejects it.
    """
    callback = node.MISSED(missed)
    module = ir.Module()
    _create(module)
    node.compute(module, ctypes.cast(callback, ctypes.c_void_p).value or 0)
    build, delete = entry(module, "delete", VOID, ADDRESS)
    outside(build, libc, "free", VOID, *delete.args)
    build.ret_void()
    addresses = machine.code(str(module), machine.SMALL)
    status = called("TF_NewStatus")
    builder = called("TF_NewOpDefinitionBuilder", operation.encode())
    for attribute in ATTRIBUTES:
        called("TF_OpDefinitionBuilderAddAttr", builder, attribute.encode())
    called("TF_OpDefinitionBuilderAddInput", builder, b"input: Tin")
    called("TF_OpDefinitionBuilderAddOutput", builder, b"output: Tout")
    unknown = ctypes.cast(library().TF_ShapeInferenceContextSetUnknownShape, ctypes.c_void_p).value
    called("TF_OpDefinitionBuilderSetShapeInferenceFunction", builder, unknown)
    called("TF_RegisterOpDefinition", builder, status)
    _check(status)
    functions = (addresses[name] for name in ("create", "compute", "delete"))
    kernel = called("TF_NewKernelBuilder", operation.encode(), b"CPU", *functions)
    called("TF_RegisterKernelBuilder", operation.encode(), kernel, status)
    _check(status)
    called("TF_DeleteStatus", status)
    return callback


def called(name: str, *given: Any) -> int:
    """Calls a function of TensorFlow's C interface with addresses, integers and texts."""
    function = getattr(library(), name)
    function.restype = ctypes.c_int64 if name not in SHORT else ctypes.c_int32
    return function(*(ctypes.c_int64(each) if isinstance(each, int) else each for each in given))


SHORT = {"TF_GetCode", "TF_NumDims", "TF_TensorType"}
"""Functions whose results are integers of 32 bits."""


def _check(status: int) -> None:
    if called("TF_GetCode", status):
        raise RuntimeError(
            f"TensorFlow rejected an operation: {ctypes.string_at(called('TF_Message', status)).decode()}"
        )


def _create(module: ir.Module) -> None:
    """Makes a kernel of a node."""
    build, create = entry(module, "create", ADDRESS, ADDRESS)
    attributes = [build.alloca(I64) for _ in _names]
    status = outside(build, library(), "TF_NewStatus", ADDRESS)
    for name, attribute in zip(_names, attributes, strict=True):
        build.store(I64(0), attribute)
        text = build.inttoptr(I64(ctypes.addressof(name)), ADDRESS)
        outside(build, library(), "TF_OpKernelConstruction_GetAttrInt64", VOID, *create.args, text, attribute, status)
    definition, process = attributes
    with build.if_then(build.icmp_signed("!=", build.load(process), I64(PROCESS))):
        text = build.inttoptr(I64(ctypes.addressof(_elsewhere)), ADDRESS)
        outside(build, library(), "TF_SetStatus", VOID, status, I32(FAILED_PRECONDITION), text)
        outside(build, library(), "TF_OpKernelConstruction_Failure", VOID, *create.args, status)
    outside(build, library(), "TF_DeleteStatus", VOID, status)
    kernel = outside(build, libc, "malloc", ADDRESS, I64(16))
    words = build.bitcast(kernel, WORD)
    build.store(build.load(definition), words)
    build.store(I64(0), build.gep(words, [I64(1)]))
    build.ret(kernel)


@cache
def runner() -> Callable[..., None]:
    """The function that runs a program, by its address, with the addresses of all memory."""
    module = ir.Module()
    node.run(module)
    return ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(machine.code(str(module), machine.SMALL)["run"])
