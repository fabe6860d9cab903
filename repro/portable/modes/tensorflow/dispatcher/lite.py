"""TFLite: models are converted as TensorFlow does it; what its interpreter would compute is refused.

A converter writes down operations and weights, and computes no results: it needs TensorFlow's own operations, in whose place a graph of the mode
has calls of definitions. The interpreter's kernels are TFLite's own.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.tensorflow.dispatcher import graphs
from repro.portable.modes.tensorflow.dispatcher.dispatch import Passing
from repro.portable.modes.tensorflow.dispatcher.exact import NATIVE
from repro.portable.modes.tensorflow.dispatcher.refusal import place

NODES = {graphs.NODE, NATIVE}
Replace = Callable[[ExitStack, Any, str, Any], None]


def install(undo: ExitStack, replace: Replace) -> None:
    try:
        from tensorflow.lite.python import interpreter, lite
    except ImportError:  # a TensorFlow without TFLite
        return
    own = lite.TFLiteConverterBase._convert_and_export_metrics
    replace(undo, lite.TFLiteConverterBase, "_convert_and_export_metrics", _converting(own))
    replace(undo, interpreter.Interpreter, "invoke", _not_invoked)
    replace(undo, interpreter.SignatureRunner, "__call__", _not_invoked)


def _converting(own: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion with TensorFlow's own operations."""

    def converted(converter: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(converter, "representative_dataset", None) is not None:
            raise _refused("a calibration by TFLite", "convert without representative_dataset")
        if _was_traced(converter):
            raise _refused("the conversion of a function that was traced", "give the converter the Keras model")
        with Passing():
            return own(converter, *arguments, **options)

    return converted


def _was_traced(converter: Any) -> bool:
    """True if a graph that is converted calls definitions: one of a function, or of a session."""
    nodes = (node for function in getattr(converter, "_funcs", None) or () for node in function.graph.get_operations())
    if any(node.type in NODES or isinstance(node, graphs.Answering) for node in nodes):
        return True
    graph = getattr(converter, "_graph_def", None)
    return graph is not None and any(node.op in NODES for node in graph.node)


def _not_invoked(*_: Any, **__: Any) -> Any:
    raise _refused("TFLite's interpreter", "call the Keras model")


def _refused(what: str, remedy: str) -> RefusedError:
    return RefusedError(
        f"portable numerics: {what} at {place() or 'an unknown line'}: TFLite's kernels have no portable form; "
        f"{remedy}, or do it in a process without portable numerics"
    )
