"""Pickles without loading them: their operations build a description, and call and import nothing.

A function, a class or an object becomes a `Made`: its name, its arguments and its state. Lists, dicts, numbers and texts are
what they are. A pickle that would run a program when it is loaded is a `Made` with the program's name.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from repro.record.contents.values import UnreadableError

MOST_OPERATIONS = 2_000_000


@dataclass(eq=False)
class Made:
    """What an operation of a pickle would make."""

    name: str
    """`module.name` of the function or class; empty for a persistent id."""
    arguments: tuple[Any, ...] = ()
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)
    """What is set by key afterwards, as of an OrderedDict."""
    appended: list[Any] = field(default_factory=list)
    called: bool = False


class Mark:
    """The place on the stack from which on an operation takes everything."""


class Machine:
    """Goes through the operations of one pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def read(self, file: BinaryIO) -> Any:
        """The description of the object. UnreadableError for what is no pickle, or too long."""
        try:
            for number, (operation, argument, _) in enumerate(pickletools.genops(file)):
                if number > MOST_OPERATIONS:
                    raise UnreadableError("too many operations")
                self._take(operation.name, argument)
                if operation.name == "STOP":
                    return self.stack.pop()
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise UnreadableError(f"no pickle: {error}") from None
        raise UnreadableError("it was cut off")

    def _take(self, name: str, argument: Any) -> None:
        if name in PUSHED:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name not in IGNORED:
            self.stack += [argument] if name in WITH_ARGUMENT else []
            OPERATIONS[name](self)

    def marked(self) -> list[Any]:
        """What lies above the last mark, taken from the stack with it."""
        place = max(n for n, item in enumerate(self.stack) if isinstance(item, Mark))
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    # --- operations -------------------------------------------------------------------------------------------------

    def name(self) -> None:
        self.stack.append(Made(str(self.stack.pop()).replace(" ", ".")))

    def stack_name(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(Made(f"{module}.{name}"))

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        self._made(function, arguments)

    def call_with_keywords(self) -> None:
        keywords, arguments, function = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self._made(function, (*arguments, keywords))

    def call_marked(self) -> None:
        function, *arguments = self.marked()
        self._made(function, arguments)

    def call_named(self) -> None:
        *arguments, name = self.marked()
        self._made(Made(str(name).replace(" ", ".")), arguments)

    def _made(self, function: Any, arguments: Any) -> None:
        name = function.name if isinstance(function, Made) else str(type(function).__name__)
        match name, tuple(arguments):
            case "_codecs.encode", (str() as text, "latin1"):  # how older protocols write bytes
                self.stack.append(text.encode("latin1"))
            case _, given:
                self.stack.append(Made(name, given, called=True))

    def set_state(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Made):
            self.stack[-1].state = state

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set(key, value)

    def set_items(self) -> None:
        items = self.marked()
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._set(key, value)

    def _set(self, key: Any, value: Any) -> None:
        target = self.stack[-1]
        items = target.items if isinstance(target, Made) else target
        items[key if isinstance(key, str | int | float | bool | bytes) else str(_label(key))] = value

    def append(self) -> None:
        value = self.stack.pop()
        self._extend([value])

    def appends(self) -> None:
        self._extend(self.marked())

    def _extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        (target.appended if isinstance(target, Made) else target).extend(values)

    def make_tuple(self) -> None:
        self.stack.append(tuple(self.marked()))

    def make_list(self) -> None:
        self.stack.append(self.marked())

    def make_dict(self) -> None:
        items = self.marked()
        self.stack.append({})
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._set(key, value)

    def persistent(self) -> None:
        self.stack.append(Made("", (self.stack.pop(),), called=True))


def _label(key: Any) -> str:
    """A key that is no text and no number, in words."""
    if isinstance(key, tuple):
        return f"({', '.join(map(_label, key))})"
    return key.name if isinstance(key, Made) else str(key)


def _tuple_of(count: int) -> Callable[[Machine], None]:
    def make(machine: Machine) -> None:
        items = tuple(machine.stack[-count:])
        if len(items) < count:
            raise ValueError("too few items")
        del machine.stack[-count:]
        machine.stack.append(items)

    return make


def _extension(machine: Machine) -> None:
    machine.stack.append(Made(f"copyreg.extension.{machine.stack.pop()}"))


def _pop_marked(machine: Machine) -> None:
    machine.marked()


PUSHED = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
    "MARK": Mark,
}
WITH_ARGUMENT = {"GLOBAL", "INST", "PERSID", "EXT1", "EXT2", "EXT4"}
IGNORED = {"PROTO", "FRAME", "STOP", "READONLY_BUFFER"}
OPERATIONS: dict[str, Callable[[Machine], None]] = {
    "GLOBAL": Machine.name,
    "STACK_GLOBAL": Machine.stack_name,
    "REDUCE": Machine.call,
    "NEWOBJ": Machine.call,
    "NEWOBJ_EX": Machine.call_with_keywords,
    "OBJ": Machine.call_marked,
    "INST": Machine.call_named,
    "BUILD": Machine.set_state,
    "SETITEM": Machine.set_item,
    "SETITEMS": Machine.set_items,
    "APPEND": Machine.append,
    "APPENDS": Machine.appends,
    "ADDITEMS": Machine.appends,
    "LIST": Machine.make_list,
    "TUPLE": Machine.make_tuple,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "FROZENSET": Machine.make_list,
    "DICT": Machine.make_dict,
    "BINPERSID": Machine.persistent,
    "PERSID": Machine.persistent,
    "POP": lambda machine: machine.stack.pop(),
    "POP_MARK": _pop_marked,
    "DUP": lambda machine: machine.stack.append(machine.stack[-1]),
    "EXT1": _extension,
    "EXT2": _extension,
    "EXT4": _extension,
}
