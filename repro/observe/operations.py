"""PyTorch, one step looked into: the name of each operation, where it is called, the hashes of what it takes and gives.

PyTorch asks a dispatch mode before each operation of a thread, and so in the backward pass, which takes over the modes
of the thread that calls it. The operation is called as it was called, so no bit changes. What torch.compile has made is
one piece to the mode: it is neither seen nor changed.
"""

import functools
import importlib
import os
import sys
from typing import Any, Optional

from . import hashing, modules, pytorch, recorder

WITHOUT_VALUES = ("empty", "new_empty", "resize")  # their results hold whatever the memory held
OVERWRITING = ("copy_", "fill_", "zero_", "set_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_")
HERE = os.path.dirname(os.path.abspath(__file__))

Place = tuple[Optional[str], Optional[str]]  # the module, the line of the program


class Looking:
    """What is written of one step: the operations since the step before it, or since the first optimizer was made.

    The mode stays on from the first optimizer on. Within a step that torch.compile has made, where hooks are called,
    PyTorch does not bear that modes come or go.
    """

    def __init__(self, torch: Any, step: int):
        self.torch, self.step = torch, step
        self.library = os.path.dirname(os.path.abspath(torch.__file__))
        self.mode: Any = None
        self.hooks = 0  # of the observer that are being run: what they call is no operation of the program
        self.count = 0
        self.names: Optional[dict[int, str]] = None  # of modules
        self.places: dict[int, Place] = {}  # of what the forward pass called, by the number of its node for autograd

    def around(self, entry: Any) -> Any:
        """One of the observer's own hooks."""

        def watched(*arguments: Any, **named: Any) -> Any:
            if self.in_step():
                _note_compiled()
            self.hooks += 1
            try:
                return entry(*arguments, **named)
            finally:
                self.hooks -= 1

        return watched

    @recorder.quietly
    def begin(self) -> None:
        """In this thread. Not where the program itself looks into operations: the modes are a stack."""
        if self.mode is not None:
            return
        if self.torch._C._len_torch_dispatch_stack():
            recorder.note("the program has a dispatch mode of its own: its operations are not seen")
            return
        self.mode = _mode(importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode, self)
        self.mode.__enter__()

    def in_step(self) -> bool:
        """Whether this is the step."""
        return not self.hooks and recorder.active is not None and recorder.active.steps == self.step - 1

    def stop(self) -> None:
        """In a process that was forked: it takes no part in the step."""
        self.hooks += 1

    def called(self, operation: Any, arguments: Any, named: Any) -> Any:
        """Calls an operation, and writes its line. The mode is off meanwhile, so what hashing calls is not seen."""
        if not self.in_step() or self._capturing():
            return operation(*arguments, **named)
        begun = self.before(operation, arguments, named)
        result = operation(*arguments, **named)
        if begun is not None:
            self.after(operation, *begun, result)
        return result

    @recorder.quietly
    def before(self, operation: Any, arguments: Any, named: Any) -> Any:
        """The hashes of what it reads, where that is, and the arguments that it writes to.

        A view reads nothing. A dataset of which each sample is a view would be hashed as often.
        """
        read, written = _taken(operation, arguments, named)
        return [] if _is_view(operation) else _hashes(read), _memory(read), written

    @recorder.quietly
    def after(self, operation: Any, inputs: list[str], read: list[int], written: list[Any], result: Any) -> None:
        outputs = _hashes([written, () if _without_values(operation) else result])
        memory = _memory([written, result])
        if not outputs and not memory:
            return
        self.count += 1
        line = {"kind": "operation", "step": self.step, "number": self.count, "name": str(operation)}
        line.update(inputs=inputs, outputs=outputs, in_place=bool(written), view=_is_view(operation))
        line.update(read_at=read, written_at=memory)
        line["module"], line["line"], line["backward"] = self.place()
        assert recorder.active is not None
        recorder.active.write(line)

    def place(self) -> tuple[Optional[str], Optional[str], bool]:
        """Module and line of an operation; in the backward pass, those of the forward one that it belongs to."""
        current = getattr(self.torch._C, "_current_autograd_node", lambda: None)()
        if current is not None:
            module, line = self.places.get(current._sequence_nr(), (None, None))
            return module, line, True
        place = self.on_the_stack()
        number = getattr(self.torch.autograd, "_get_sequence_nr", int)() - 1
        if self.torch.is_grad_enabled():
            self.places.setdefault(number, place)  # what needs no gradient follows with the same number
        return (*place, False)

    def on_the_stack(self) -> Place:
        """The innermost module that is being called, and the innermost line that is not the library's."""
        module = line = None
        frame: Any = sys._getframe(1)
        while frame is not None and (module is None or line is None):
            file = frame.f_code.co_filename
            if file.startswith(self.library + os.sep):
                if module is None and frame.f_code.co_name == "_call_impl":
                    owner = frame.f_locals.get("self")
                    module = self.module_names().get(id(owner)) or type(owner).__name__
            elif line is None and not file.startswith((HERE + os.sep, "<")):
                line = f"{file}:{frame.f_lineno}"
            frame = frame.f_back
        return module, line

    def module_names(self) -> dict[int, str]:
        """By identity, the path of each module from the largest one that it is part of."""
        if self.names is None:
            self.names = {}
            roots = [(root, list(root.named_modules())) for root in modules.known_modules()]
            for _, parts in sorted(roots, key=lambda pair: -len(pair[1])):
                for name, module in parts:
                    self.names.setdefault(id(module), modules.plain_name(name))
        return self.names

    def _capturing(self) -> bool:
        cuda = self.torch.cuda
        return cuda.is_initialized() and cuda.is_current_stream_capturing()


def _mode(base: Any, looks: Looking) -> Any:
    """A dispatch mode: its class can only be made once PyTorch is there."""

    class Mode(base):
        supports_higher_order_operators = True

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True  # else nothing would be compiled meanwhile, which gives other bits

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return looks.called(func, args, kwargs or {})

    return Mode()


def _taken(operation: Any, arguments: Any, named: Any) -> tuple[list[Any], list[Any]]:
    """Of the arguments, those that are read, and those that are written to."""
    schema = getattr(operation, "_schema", None)
    if schema is None:  # an operator of higher order
        return [arguments, named], []
    read, written = [], []
    overwritten = operation._schema.name.split("::")[-1] in OVERWRITING
    for place, argument in enumerate(schema.arguments):
        value = arguments[place] if place < len(arguments) else named.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            written.append(value)
        if not writes or not (overwritten or getattr(argument, "is_out", False)):
            read.append(value)
    return read, written


def _is_view(operation: Any) -> bool:
    """Whether what it returns is the memory of what it got."""
    returns = getattr(getattr(operation, "_schema", None), "returns", ())
    return any(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _without_values(operation: Any) -> bool:
    schema = getattr(operation, "_schema", None)
    return schema is not None and schema.name.split("::")[-1].startswith(WITHOUT_VALUES)


def _hashes(values: Any) -> list[str]:
    """The hashes of all tensors and plain numbers in nested lists, in their order; none of what has no values."""
    found = []
    for _, value in hashing.leaves(values):
        try:
            code = hashing.of_tensor(value) if hasattr(value, "layout") else hashing.of_scalar(value)
        except Exception:  # a tensor without values, such as those that the compiler computes with
            code = None
        if code is not None and value is not None:
            found.append(code)
    return found


def _memory(values: Any) -> list[int]:
    """Where the values of tensors are; a sparse one has no single place."""
    tensors = [value for _, value in hashing.leaves(values) if str(getattr(value, "layout", "")) == "torch.strided"]
    return sorted({value.untyped_storage().data_ptr() for value in tensors} - {0})


def _note_compiled() -> None:
    """Says that torch.compile is used: what it compiled is not seen."""
    utils = sys.modules.get("torch._dynamo.utils")
    graphs = getattr(utils, "counters", {}).get("stats", {}).get("unique_graphs", 0)
    if graphs:
        recorder.note(f"torch.compile has compiled {graphs} graphs: the operations in them are not seen")


def after_torch(torch: Any) -> None:
    """Has the mode begin with the first optimizer, and the observer's hooks say when they run, if a step is named."""
    step = os.environ.get("REPRO_OBSERVE_NARROW", "")
    if not step.isdigit() or pytorch.observer is None:
        return
    looks = Looking(torch, int(step))
    pytorch.wrap_entries(looks.around)
    os.register_at_fork(after_in_child=looks.stop)
    kind = torch.optim.Optimizer
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807
        make(self, *arguments, **named)
        looks.begin()

    kind.__init__ = __init__
