"""A step of TensorFlow again in float64, operation by operation.

TensorFlow calls back after each operation that runs by itself, outside of a graph. It is run again with a float64 copy of
each floating array; arrays of TensorFlow never change, so a copy belongs to one of them. Drawn numbers are not drawn again.
They and what is read from a variable, and all whole numbers and bools, are those of the step, so both computations take the
same ways. A cast to a shorter type stays in float64. A number of the program, as 0.1, is not rounded to float32 first.
"""

import functools
import sys
from typing import Any, Optional

from . import recorder

GIVEN = (
    "ReadVariableOp",
    "VarHandleOp",
    "IteratorGetNext",
    "EagerPyFunc",
    "PyFunc",
)  # what they give is read, not computed
DRAWN = ("Random", "Multinomial", "Stateless")
NO_COPY = "{} is not computed in float64: what depends on it has no exact values"


class TensorFlowDoubles:
    """The float64 copies of a step, by the number of an array."""

    def __init__(self, tensorflow: Any):
        self.tensorflow = tensorflow
        self.callbacks = sys.modules["tensorflow.python.framework.op_callbacks"]
        self.definitions = sys.modules["tensorflow.python.framework.op_def_registry"]
        self.record = sys.modules["tensorflow.python.eager.record"]
        self.context = sys.modules["tensorflow.python.eager.context"]
        self.quick_execute = sys.modules["tensorflow.python.eager.execute"].quick_execute
        self.wrap: Any = sys.modules["tensorflow.python.pywrap_tfe"]
        self.execute: Any = None  # TensorFlow's own function for operations
        self.written: list[float] = []  # numbers among the last one's arguments
        self.on = False
        self.copies: dict[int, Any] = {}  # None: there is no right one
        self.watch_constants(sys.modules["tensorflow.python.framework.constant_op"])

    def begin(self) -> None:
        """Computes in float64 from here on, in this thread, until `end`."""
        if not self.on and recorder.has_native_numerics():
            self.on = True
            self.callbacks.add_op_callback(self.call)
            self.execute = self.wrap.TFE_Py_FastPathExecute
            self.wrap.TFE_Py_FastPathExecute = self.fast_execute

    def end(self) -> None:
        """Ends it, and forgets all copies."""
        if self.on:
            self.on = False
            self.copies.clear()
            self.wrap.TFE_Py_FastPathExecute = self.execute
            self.callbacks.remove_op_callback(self.call)

    def fast_execute(self, *args: Any) -> Any:
        """Keeps the numbers that a program has written as arguments: C code makes arrays of them."""
        self.written = [one for one in args if type(one) is float]
        return self.execute(*args)

    def call(
        self, name: Any, inputs: Any, attributes: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """An operation has run. TensorFlow gives its name as text or as bytes."""
        if self.on and graph is None and not recorder.is_busy():
            self.compute(name.decode() if isinstance(name, bytes) else name, [*inputs], attributes, [*outputs])

    @recorder.never_raise
    def compute(self, name: str, inputs: list[Any], attributes: Any, outputs: list[Any]) -> None:
        definition = self.definitions.get(name)
        made = [output for output in outputs if self.is_floating(output)]
        if not made:
            return
        if not any(map(self.is_floating, inputs)) or name in GIVEN or name.startswith(DRAWN):
            for output in made:
                self.add(output, output)
            return
        copies = [self.copy(one) if self.is_floating(one) else one for one in inputs]
        missing = any(copy is None for copy in copies)
        results = (
            None
            if missing or definition is None or definition.is_stateful
            else self.run(name, definition, copies, attributes, len(outputs))
        )
        if results is None and not missing:
            recorder.note(NO_COPY.format(name))
        for place, output in enumerate(outputs):
            if self.is_floating(output):
                copy = None if results is None else results[place]
                self.copies[output._id] = copy if copy is not None and copy.shape == output.shape else None

    def run(self, name: str, definition: Any, inputs: list[Any], attributes: Any, count: int) -> Optional[list[Any]]:
        """What an operation gives in float64; None where it has no such form."""
        kinds = {one.name: one.type for one in definition.attr}
        given: list[Any] = []
        for key, value in zip(attributes[::2], attributes[1::2]):
            if value is not None:  # TensorFlow's own default
                given += [key, self.in_float64(kinds.get(key, ""), value)]
        try:
            with self.record.stop_recording():
                return [*self.quick_execute(name, count, inputs, tuple(given), self.context.context())]
        except Exception:
            return None

    def in_float64(self, kind: str, value: Any) -> Any:
        """The value of an attribute, with float64 in the place of another type of floats."""
        if kind == "list(type)":
            return [self.in_float64("type", one) for one in value]
        if kind == "type" and self.tensorflow.dtypes.as_dtype(value).is_floating:
            return self.tensorflow.float64.as_datatype_enum
        return value

    def is_floating(self, value: Any) -> bool:
        return hasattr(value, "_id") and bool(value.dtype.is_floating) and value.dtype.size > 1

    def copy(self, tensor: Any) -> Any:
        """The float64 copy of an array, made of its values if it has none yet; None where there is no right one."""
        if tensor._id not in self.copies:
            self.add(tensor, tensor if tensor.shape.rank else self.number(tensor.numpy()))
        return self.copies[tensor._id]

    def add(self, tensor: Any, value: Any) -> None:
        """Sets the copy of an array."""
        with self.record.stop_recording():
            make = self.tensorflow.constant if isinstance(value, float) else self.tensorflow.cast
            self.copies[tensor._id] = make(value, "float64")

    def number(self, value: Any) -> float:
        """The number of the program that was rounded to this one; by its shortest text if it is not known."""
        kind = type(value)
        return next((one for one in self.written if kind(one) == value), float(str(value)))

    def watch_constants(self, module: Any) -> None:
        """Keeps the number that a program has written, where TensorFlow makes an array of it."""
        convert = module.convert_to_eager_tensor

        @functools.wraps(convert)
        def watched(value: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = convert(value, *args, **kwargs)
            if self.on and not recorder.is_busy():
                self.add_constant(tensor, value)
            return tensor

        module.convert_to_eager_tensor = watched

    @recorder.never_raise
    def add_constant(self, tensor: Any, value: Any) -> None:
        if self.is_floating(tensor) and tensor.shape.rank == 0:
            self.add(tensor, float(value))
