"""What else of TensorFlow would change numbers: graph rewrites, XLA, operations that it loads."""

import os
from contextlib import ExitStack
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.compiler.xla import jit
from tensorflow.python.eager import execute
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import ops

from repro.errors import UsageError
from repro.portable.tensorflow.mode import dispatch


def replace(undo: ExitStack, holder: Any, name: str, value: Any) -> None:
    """An attribute with another value, until it is undone."""
    before = vars(holder).get(name)
    setattr(holder, name, value)
    undo.callback(setattr if before is not None else delattr, *((holder, name, before) if before is not None else (holder, name)))


def install(undo: ExitStack) -> None:
    """Replaces what makes operations, and switches off what rewrites them."""
    if "tf_xla_auto_jit" in os.environ.get("TF_XLA_FLAGS", ""):
        raise UsageError("portable: TF_XLA_FLAGS asks for XLA, which rewrites arithmetic; unset TF_XLA_FLAGS")
    without_rewrites(undo)
    without_xla(undo)
    replace(undo, pywrap_tfe, "TFE_Py_FastPathExecute", dispatch.fast_path)
    replace(undo, execute, "execute", dispatch.executed)
    replace(undo, ops.Graph, "_create_op_internal", dispatch.created)
    replace(undo, ops.Graph, "_create_op_from_tf_operation", dispatch.imported)


def without_rewrites(undo: ExitStack) -> None:
    """Without Grappler: it folds constants, and divides by multiplying."""
    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    undo.callback(tf.config.optimizer.set_experimental_options, {"disable_meta_optimizer": before})


def without_xla(undo: ExitStack) -> None:
    """Functions and scopes that XLA would compile run as graphs, as all others."""
    before = tf.config.optimizer.get_jit()
    tf.config.optimizer.set_jit(False)
    undo.callback(tf.config.optimizer.set_jit, before or False)
    replace(undo, polymorphic_function.Function, "_jit_compile", NotCompiled())
    replace(undo, jit, "experimental_jit_scope", _scope)


class NotCompiled:
    """The attribute of a function that says whether XLA compiles it: it says no, and keeps what it was set to."""

    def __get__(self, function: Any, kind: Any = None) -> Any:
        if function is None:
            return self
        return False if vars(function).get("_jit_compile") else vars(function).get("_jit_compile")

    def __set__(self, function: Any, value: Any) -> None:
        vars(function)["_jit_compile"] = value


def _scope(compile_ops: Any = True, separate_compiled_gradients: Any = False) -> ExitStack:
    return ExitStack()
