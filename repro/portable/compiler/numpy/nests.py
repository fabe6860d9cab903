"""Parts of loop nests: their nodes in order, a loop of one turn, and how they are called."""

from collections.abc import Sequence

from llvmlite import ir

from repro.portable.compiler.nodes import Node
from repro.portable.kernels.machine import ADDRESS, I64, VOID, entry


def entered(function: ir.Function) -> None:
    """Adds an entry point: it takes an array of addresses, the first unit, and the unit to stop before."""
    build, call = entry(function.module, "call", VOID, ADDRESS.as_pointer(), I64, I64)
    addresses, begin, end = call.args
    given = [
        build.bitcast(build.load(build.gep(addresses, [I64(number)])), argument.type)
        for number, argument in enumerate(function.args[:-2])
    ]
    build.call(function, [*given, begin, end])
    build.ret_void()


class OneTurn:
    """A loop of one turn."""

    def __enter__(self) -> ir.Value:
        return I64(0)

    def __exit__(self, *_: object) -> None:
        pass


def ordered(results: Sequence[Node]) -> list[Node]:
    """All nodes that results need, each after its inputs."""
    order: dict[Node, None] = {}
    ahead: list[tuple[Node, bool]] = [(node, False) for node in reversed(results)]
    while ahead:
        node, ready = ahead.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
            continue
        ahead.append((node, True))
        ahead += [(each, False) for each in node.inputs if isinstance(each, Node) and each not in order]
    return list(order)


def is_row(node: Node, axes: tuple[int, ...]) -> bool:
    """True if a node has one number for all elements along the axes."""
    return all(axis >= len(node.shape) or node.shape[axis] == 1 for axis in axes)
