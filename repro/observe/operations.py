"""Operations of one step in PyTorch.

Written are the name of each, where it is called, the hashes of what it takes and gives. PyTorch asks a dispatch mode
before each operation of a thread, and so in the backward pass, which takes over the modes of the thread that calls it.
The operation is called as it was called, so no bit changes. What torch.compile has made is one piece to the mode: it is
neither seen nor changed.
"""

import functools
import os
import sys
import traceback
from typing import Any, Optional

from . import dispatch, entries, hashing, modules, pytorch, recorder

WITHOUT_VALUES = ("empty", "new_empty", "resize")  # their results hold whatever was in memory
OVERWRITING = ("copy_", "fill_", "zero_", "set_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_")
FOLDER = os.path.dirname(os.path.abspath(__file__))

OTHER_MODE = "the program has a dispatch mode of its own: its operations are not seen"

Location = tuple[Optional[str], Optional[str]]  # the module, the line of the program


class OperationTracer:
    """The lines of one step: the operations since the step before it, or since the first optimizer was made.

    The mode stays on from the first optimizer on. Within a step that torch.compile has made, where hooks are called,
    PyTorch does not bear that modes come or go.
    """

    def __init__(self, torch: Any, step: int):
        self.torch, self.step = torch, step
        self.library = os.path.dirname(os.path.abspath(torch.__file__))
        self.mode: Any = None
        self.running_entries = 0  # functions of the observer that run: they call no operations of the program
        self.count = 0
        self.module_names: Optional[dict[int, str]] = None  # by identity
        self.locations: dict[int, Location] = {}  # by the sequence number of the autograd node, in the forward pass

    def wrap_entry(self, entry: Any) -> Any:
        """Wraps one of the observer's own functions, in which no operation is traced."""

        def untraced(*args: Any, **kwargs: Any) -> Any:
            if self.in_step():
                _note_compiled()
            self.running_entries += 1
            try:
                return entry(*args, **kwargs)
            finally:
                self.running_entries -= 1

        return untraced

    @recorder.never_raise
    def begin(self) -> None:
        """Begins in this thread. Not where the program itself looks into operations: the modes are a stack."""
        if self.mode is not None:
            return
        if self.torch._C._len_torch_dispatch_stack():
            recorder.note(OTHER_MODE)
            return
        self.mode = dispatch.mode(self.call)
        self.mode.__enter__()

    def in_step(self) -> bool:
        """True during the step whose operations are recorded."""
        active = recorder.active
        return not self.running_entries and active is not None and active.steps == self.step - 1

    def stop(self) -> None:
        """Ends the mode in a forked process, which takes no part in the step."""
        self.running_entries += 1

    def call(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Calls an operation, and writes its line. The mode is off meanwhile, so what hashing calls is not seen."""
        if not self.in_step() or self.is_capturing():
            return operation(*args, **kwargs)
        begun = self.before(operation, args, kwargs)
        result = operation(*args, **kwargs)
        if begun is not None:
            self.after(operation, *begun, result)
        return result

    @recorder.never_raise
    def before(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """The hashes of what it reads, where that is, and the arguments that it writes to.

        A view reads nothing. A dataset of which each sample is a view would be hashed as often.
        """
        read, written = _split_arguments(operation, args, kwargs)
        return [] if dispatch.is_view(operation) else _hashes(read), _addresses(read), written

    @recorder.never_raise
    def after(self, operation: Any, inputs: list[str], read: list[int], written: list[Any], result: Any) -> None:
        outputs = _hashes([written, () if dispatch.name(operation).startswith(WITHOUT_VALUES) else result])
        addresses = _addresses([written, result])
        if not outputs and not addresses:
            return
        self.count += 1
        line = {"kind": "operation", "step": self.step, "number": self.count, "name": str(operation)}
        line.update(inputs=inputs, outputs=outputs, in_place=bool(written), view=dispatch.is_view(operation))
        line.update(read_at=read, written_at=addresses)
        line["module"], line["line"], line["backward"] = self.location()
        assert recorder.active is not None
        recorder.active.write(line)

    def location(self) -> tuple[Optional[str], Optional[str], bool]:
        """Module and line of an operation; in the backward pass, those of the forward one that it belongs to."""
        node = getattr(self.torch._C, "_current_autograd_node", lambda: None)()
        if node is not None:
            module, line = self.locations.get(node._sequence_nr(), (None, None))
            return module, line, True
        location = self.location_on_stack()
        number = getattr(self.torch.autograd, "_get_sequence_nr", int)() - 1
        if self.torch.is_grad_enabled():
            self.locations.setdefault(number, location)  # operations without a gradient follow with the same number
        return (*location, False)

    def location_on_stack(self) -> Location:
        """The innermost module that is being called, and the innermost line that is not the library's."""
        module = line = None
        for frame, number in traceback.walk_stack(sys._getframe()):
            file = frame.f_code.co_filename
            if file.startswith(self.library + os.sep):
                if module is None and frame.f_code.co_name == "_call_impl":
                    owner = frame.f_locals.get("self")
                    module = self.name_modules().get(id(owner)) or type(owner).__name__
            elif line is None and not file.startswith((FOLDER + os.sep, "<")):
                line = f"{file}:{number}"
            if module is not None and line is not None:
                break
        return module, line

    def name_modules(self) -> dict[int, str]:
        """The path of each module from the largest one that it is part of, by identity."""
        if self.module_names is None:
            self.module_names = {}
            trees = [list(root.named_modules()) for root in modules.known_modules()]
            for tree in sorted(trees, key=len, reverse=True):
                for name, module in tree:
                    self.module_names.setdefault(id(module), modules.plain_name(name))
        return self.module_names

    def is_capturing(self) -> bool:
        cuda = self.torch.cuda
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _split_arguments(operation: Any, args: Any, kwargs: Any) -> tuple[list[Any], list[Any]]:
    """The tensors among the arguments that are read, and those that are written to."""
    schema = getattr(operation, "_schema", None)
    if schema is None:
        return [args, kwargs], []
    read, written = [], []
    overwrites = dispatch.name(operation) in OVERWRITING
    for index, argument in enumerate(schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            written.append(value)
        if not writes or not (overwrites or getattr(argument, "is_out", False)):
            read.append(value)
    return read, written


def _hashes(values: Any) -> list[str]:
    """The hashes of all tensors and plain numbers in nested lists, in their order; none of what has no values."""
    hashes = []
    for _, value in hashing.leaves(values):
        try:
            code = hashing.hash_leaf(value)
        except Exception:  # a tensor without values, such as those that the compiler uses
            code = None
        if code is not None and value is not None:
            hashes.append(code)
    return hashes


def _addresses(values: Any) -> list[int]:
    """Addresses of the values of tensors; a sparse tensor has no single address, nor has a wrapper of others."""
    tensors = [value for _, value in hashing.leaves(values) if str(getattr(value, "layout", "")) == "torch.strided"]
    return sorted({_address(value) for value in tensors} - {0})


def _address(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except Exception:
        return 0


def _note_compiled() -> None:
    """Notes that torch.compile is used: what it compiled is not seen."""
    utils = sys.modules.get("torch._dynamo.utils")
    graphs = getattr(utils, "counters", {}).get("stats", {}).get("unique_graphs", 0)
    if graphs:
        recorder.note(f"torch.compile has compiled {graphs} graphs: the operations in them are not seen")


def after_torch(torch: Any) -> None:
    """Begins the mode with the first optimizer, if REPRO_OBSERVE_NARROW names a step."""
    step = os.environ.get("REPRO_OBSERVE_NARROW", "")
    if not step.isdigit() or pytorch.observer is None:
        return
    tracer = OperationTracer(torch, int(step))
    entries.wrap_all(tracer.wrap_entry)
    os.register_at_fork(after_in_child=tracer.stop)
    kind = torch.optim.Optimizer
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        make(self, *args, **kwargs)
        tracer.begin()

    kind.__init__ = __init__
