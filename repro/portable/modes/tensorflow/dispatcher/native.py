"""Definitions in graphs that run without Python once it is known which kernels compute them.

A node of such a definition asks Python for arrays of shapes that are new. Python computes the results, and notes the kernels that
it calls. If these give the same bits again they are all that the node runs from then on.
"""

import ctypes
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes

from repro.portable import kernels
from repro.portable.compiler.numpy.plan import same
from repro.portable.modes.common.precision import setting
from repro.portable.modes.tensorflow.dispatcher import dispatch
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, Definition
from repro.portable.modes.tensorflow.dispatcher.exact import NATIVE

if kernels.available:
    from repro.portable.kernels.numpy import node, operation
    from repro.portable.kernels.numpy.programs import Program, Recorder, UnknownMemoryError, apart
    from repro.portable.kernels.numpy.threads import address, empty

log = logging.getLogger(__name__)
TYPES = {types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, types_pb2.DT_INT32, types_pb2.DT_INT64}
"""The types that kernels take."""
TRIES, PROGRAMS = 3, 64
"""The number of times that a program is looked for, and of programs that a definition has at most."""
INVALID, UNKNOWN = 3, 2
"""TensorFlow's numbers of errors: of wrong arguments, and of any other kind."""
CODES: dict[type[BaseException], int] = {
    ValueError: INVALID,
    TypeError: INVALID,
    StopIteration: 11,
    MemoryError: 8,
    NotImplementedError: 12,
}
"""TensorFlow's numbers of errors, as its own calls of Python have them."""


@cache
def available() -> bool:
    """True if TensorFlow takes an operation that is compiled here."""
    if not kernels.available:
        return False
    try:
        operation.register(NATIVE, _missed)
    except (AttributeError, OSError, RuntimeError) as error:  # another interface of another version
        log.warning("portable: definitions are called by Python: %s", error)
        return False
    return True


def follow(replace: Callable[[Any, str, Any], None]) -> None:
    """Programs of one precision are none of another."""
    if kernels.available:
        replace(node.setting, "value", setting.slices)


def takes(definition: Definition, inputs: Sequence[int], results: Sequence[int]) -> bool:
    """True if a node with arrays of these types may run programs."""
    if definition.reads is None or not {*inputs, *results} <= TYPES or not available():
        return False
    return len(inputs) <= node.INPUTS and len(results) <= node.RESULTS


class Native:
    """A definition with some attributes, for arrays of some types."""

    def __init__(self, name: str, definition: Definition, given: Attributes, results: Sequence[int]) -> None:
        self.name, self.function, self.given, self.types = name, definition.function, given, results
        self.dtypes = [dtypes.as_dtype(each).as_numpy_dtype for each in results]
        self.words = (ctypes.c_int64 * node.WORDS)()
        self.words[node.BY_VALUE] = sum(1 << index for index in definition.reads or ())
        self.programs: list[Program] = []
        self.tries: Counter[bytes] = Counter()

    def compute(self, arrays: list[np.ndarray], signature: bytes) -> list[np.ndarray]:
        """The results, as arrays in a row."""
        function = self.function
        if signature and self._is_sought(signature):
            function = lambda given, *arrays: self._recorded(signature, arrays)  # noqa: E731
        results = dispatch.computed(self.name, function, self.given, arrays)
        if [each.dtype for each in results] != self.dtypes:
            raise TypeError(f"{self.name} gave {[each.dtype.name for each in results]}")
        return [np.ascontiguousarray(each).reshape(each.shape) for each in results]

    def _is_sought(self, signature: bytes) -> bool:
        return setting.slices == node.setting.value and self.tries[signature] < TRIES and len(self.programs) < PROGRAMS

    def _recorded(self, signature: bytes, arrays: Sequence[np.ndarray]) -> Any:
        """Computes the results, and keeps the program that gives the same."""
        self.tries[signature] += 1
        arrays = apart(arrays)
        with Recorder(arrays) as heard:
            returned = self.function(self.given, *arrays)
        results = list(returned) if isinstance(returned, tuple) else [returned]
        try:
            words = (ctypes.c_int64 * (len(signature) // 8)).from_buffer_copy(signature)
            program = Program(heard, results, self.types, words)
        except UnknownMemoryError as error:
            log.debug("portable: %s has no program: %s", self.name, error)
            return returned
        again = [empty(each.shape, each.dtype) for each in results]
        between = np.empty(program.size + 64, np.uint8)
        begins = [*map(address, (*arrays, *again)), address(between) + -address(between) % 64, 0]
        operation.runner()(program.address, (ctypes.c_int64 * len(begins))(*begins))
        if same(results, again):
            with _lock:
                program.words[0] = self.words[node.FIRST]
                self.programs.append(program)
                self.words[node.FIRST] = program.address
        else:
            log.warning("portable: %s gives different bits in a program; it runs without", self.name)
        return returned


_lock = threading.Lock()
_natives: dict[Any, Native] = {}
_by_address: dict[int, Native] = {}


def attributes_of(
    name: str, definition: Definition, given: Attributes, inputs: Sequence[int], results: Sequence[int]
) -> dict[str, int]:
    """The attributes of a node that computes a definition with these attributes, of arrays of these types."""
    key = name, definition.function, repr(sorted(given.items())), *inputs, None, *results
    with _lock:
        if key not in _natives:
            _natives[key] = made = Native(name, definition, given, results)
            _by_address[ctypes.addressof(made.words)] = made
        return {"definition": ctypes.addressof(_natives[key].words), "process": operation.PROCESS}


def counts() -> Counter[str]:
    """The number of calls of each definition that programs made."""
    result: Counter[str] = Counter()
    for each in list(_natives.values()):
        result[each.name] += each.words[node.CALLS]
    return +result


# --- called by nodes --------------------------------------------------------------------------------------------------


def _missed(context: int, definition: int, tensors: int, number: int, signature: int, length: int, status: int) -> None:
    try:
        native = _by_address[definition]
        arrays = [_array(tensor) for tensor in (ctypes.c_int64 * number).from_address(tensors)]
        results = native.compute(arrays, ctypes.string_at(signature, 8 * length))
        for index, (result, type_) in enumerate(zip(results, native.types, strict=True)):
            _give(context, index, result, type_, status)
    except BaseException as error:
        code = next((number for kind, number in CODES.items() if isinstance(error, kind)), UNKNOWN)
        text = f"{type(error).__name__}: {error}\n{''.join(traceback.format_exception(error))}"
        operation.called("TF_SetStatus", status, code, text.encode())
        operation.called("TF_OpKernelContext_Failure", context, status)


def _array(tensor: int) -> np.ndarray:
    """A tensor's own memory."""
    called = operation.called
    dtype = dtypes.as_dtype(called("TF_TensorType", tensor)).as_numpy_dtype
    shape = tuple(called("TF_Dim", tensor, axis) for axis in range(called("TF_NumDims", tensor)))
    size = called("TF_TensorByteSize", tensor)
    if not size:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(called("TF_TensorData", tensor))
    return np.ndarray(shape, dtype, memory)


def _give(context: int, index: int, result: np.ndarray, type_: int, status: int) -> None:
    """Hands a result over."""
    shape = (ctypes.c_int64 * max(1, result.ndim))(*result.shape)
    given = context, index, type_, ctypes.addressof(shape), result.ndim, result.nbytes, status
    tensor = operation.called("TF_AllocateOutput", *given)
    if not tensor:
        raise MemoryError(f"no memory for {result.dtype.name} {[*result.shape]}")
    if result.nbytes:
        ctypes.memmove(operation.called("TF_TensorData", tensor), address(result), result.nbytes)
    operation.called("TF_DeleteTensor", tensor)
