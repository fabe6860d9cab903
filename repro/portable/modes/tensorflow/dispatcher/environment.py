"""Other parts of TensorFlow that would change numbers: graph rewrites, XLA, operations that it loads."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.client import session
from tensorflow.python.compiler.xla import jit
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import ops
from tensorflow.python.saved_model import save

from repro.errors import UsageError
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.tensorflow.dispatcher import arrays, dispatch, graphs, lite
from repro.portable.modes.tensorflow.dispatcher.refusal import place


def replace(undo: ExitStack, holder: Any, name: str, value: Any) -> None:
    """An attribute with another value, until it is undone."""
    before = vars(holder).get(name)
    setattr(holder, name, value)
    undo.callback(
        setattr if before is not None else delattr, *((holder, name, before) if before is not None else (holder, name))
    )


def install(undo: ExitStack) -> None:
    """Replaces what makes operations, and switches off what rewrites them."""
    if "tf_xla_auto_jit" in os.environ.get("TF_XLA_FLAGS", ""):
        raise UsageError("portable: TF_XLA_FLAGS asks for XLA, which rewrites arithmetic; unset TF_XLA_FLAGS")
    without_rewrites(undo)
    without_xla(undo)
    replace(undo, pywrap_tfe, "TFE_Py_FastPathExecute", dispatch.fast_path)
    replace(undo, execute, "execute", dispatch.executed)
    replace(undo, ops.Graph, "_create_op_internal", graphs.created)
    replace(undo, ops.Graph, "_create_op_from_tf_operation", graphs.imported)
    replace(undo, save, "save_and_return_nodes", _saving(save.save_and_return_nodes))
    lite.install(undo, replace)
    arrays.install(undo)


def when_initialized(undo: ExitStack, check: Callable[[], None]) -> None:
    """Calls a check once TensorFlow has its devices, which a program may choose until then. Where it fails, all fails."""
    if context.context()._initialized:
        check()
        return
    own, state = context.Context.ensure_initialized, Checked()

    def ensured(self: Any) -> None:
        own(self)
        if state.error is not None:
            raise state.error
        if not state.begun:
            state.begun = True
            try:
                check()
            except UsageError as error:
                state.error = error
                raise

    replace(undo, context.Context, "ensure_initialized", ensured)


class Checked:
    """The result of a check."""

    begun = False
    error: UsageError | None = None


def _saving(own: Callable[..., Any]) -> Callable[..., Any]:
    """Saves graphs of TensorFlow's own operations alone."""

    def saved(*arguments: Any, **options: Any) -> Any:
        if dispatch.thread.passing:
            return own(*arguments, **options)
        raise RefusedError(
            f"portable numerics: a SavedModel at {place() or 'an unknown line'}: graphs of portable numerics run in this "
            "process alone; save weights or a .keras file, and export the model without portable numerics"
        )

    return saved


def without_rewrites(undo: ExitStack) -> None:
    """Without Grappler: it folds constants, and divides by multiplying."""
    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    undo.callback(tf.config.optimizer.set_experimental_options, {"disable_meta_optimizer": before})
    own = context.Context.set_optimizer_experimental_options
    replace(undo, context.Context, "set_optimizer_experimental_options", _with(own))
    start = session.BaseSession.__init__
    replace(undo, session.BaseSession, "__init__", _plain_session(start))


def _with(own: Any) -> Any:
    """The options that a program asks for, without rewrites."""
    return lambda self, options: own(self, {**options, "disable_meta_optimizer": True})


def _plain_session(start: Any) -> Any:
    """Sessions of TensorFlow 1 have options of their own."""

    def started(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        plain = config_pb2.ConfigProto()
        if config is not None:
            plain.CopyFrom(config)
        plain.graph_options.rewrite_options.disable_meta_optimizer = True
        plain.graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
        start(self, target, graph, plain)

    return started


def without_xla(undo: ExitStack) -> None:
    """Functions and scopes that XLA would compile run as graphs, as all others."""
    before = tf.config.optimizer.get_jit()
    tf.config.optimizer.set_jit(False)
    undo.callback(tf.config.optimizer.set_jit, before or False)
    replace(undo, polymorphic_function.Function, "_jit_compile", NotCompiled())
    replace(undo, polymorphic_function.Function, "experimental_get_compiler_ir", _no_code)
    replace(undo, jit, "experimental_jit_scope", _scope)
    replace(undo, context.Context, "optimizer_jit", property(lambda self: False, lambda self, enabled: None))


class NotCompiled:
    """The attribute of a function that says whether XLA compiles it: it says no, and keeps what it was set to."""

    def __get__(self, function: Any, kind: Any = None) -> Any:
        if function is None:
            return self
        return False if vars(function).get("_jit_compile") else vars(function).get("_jit_compile")

    def __set__(self, function: Any, value: Any) -> None:
        vars(function)["_jit_compile"] = value


def _no_code(*_: Any, **__: Any) -> Any:
    raise RefusedError(
        f"portable numerics: XLA's code of a function at {place() or 'an unknown line'}: with jit_compile=True a function "
        "runs as a graph, without XLA; ask for the code in a process without portable numerics"
    )


def _scope(compile_ops: Any = True, separate_compiled_gradients: Any = False) -> ExitStack:
    return ExitStack()
