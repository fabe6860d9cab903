"""Calls of Keras' layers in the steps that `record --modules` names, with the loss and the gradients, on TensorFlow.

Until the last of these steps is over, everything runs as it is written, outside of graphs: there each layer is called with
arrays. A call belongs to a training step if a GradientTape records it, and its gradients are taken.
"""

import functools
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from . import entries, module_calls, recorder, tensorflow_doubles
from .keras_steps import backend, observed_optimizer, variable_name
from .module_calls import Codes

OTHER = "Keras on {}: calls of layers are not written"
DISTRIBUTED = "Keras with a distribution strategy: calls of layers are not written"
LEFT_OUT = ("name", "trainable", "dtype")  # of a layer's options


class Called:
    """A call of a layer that has begun."""

    def __init__(self, layer: Any, outermost: Optional["Called"]):
        self.layer = layer
        self.outermost = outermost or self
        self.content: dict[str, Any] = {}
        self.done = False


class Pass(NamedTuple):
    """Calls of which gradients were taken."""

    calls: list[Called]
    loss: Codes
    exact: Codes
    sources: set[int]  # the identities of what they are gradients by


class Calls:
    """The calls since the last step."""

    def __init__(self, keras: Any, tensorflow: Any):
        self.keras, self.tensorflow = keras, tensorflow
        self.doubles = tensorflow_doubles.TensorFlowDoubles(tensorflow)
        self.eager = bool(tensorflow.config.functions_run_eagerly())  # as the program has it
        self.roots: list[Any] = []  # the models, in the order in which they were first written
        self.reset()

    def reset(self) -> None:
        """Begins with nothing seen, also in a forked child."""
        self.waiting: list[Called] = []
        self.passes: list[Pass] = []
        self.stack: list[Called] = []
        self.applying = False

    def begin(self, layer: Any, args: Any, kwargs: Any) -> Optional[Called]:
        """A call begins; None if it is not written."""
        if not self.tensorflow.executing_eagerly() or self.is_symbolic(args, kwargs):
            return None
        if not self.stack:
            if not self.doubles.record.could_possibly_record() or not module_calls.is_asked(module_calls.following()):
                return None
            if self.tensorflow.distribute.has_strategy():
                recorder.note(DISTRIBUTED)
                return None
            self.doubles.begin()
        called = Called(layer, self.stack[0] if self.stack else None)
        called.content = {
            "settings": settings_of(layer),
            "training": self.training(kwargs),
            "inputs": module_calls.argument_hashes(args, {**self.mask(layer, args, kwargs), **kwargs}),
            "weights": self.hashes_of(layer._trainable_variables),
            "buffers": self.hashes_of(layer._non_trainable_variables),
        }
        self.waiting.append(called)
        self.stack.append(called)
        return called

    def is_symbolic(self, args: Any, kwargs: Any) -> bool:
        """True for a call that only plans a model."""
        kind = self.keras.KerasTensor
        return any(isinstance(leaf, kind) for leaf in self.keras.tree.flatten([args, kwargs]))

    def training(self, kwargs: Any) -> Optional[bool]:
        """Whether a layer is called for training: as it says itself, or else the call around it."""
        given = kwargs.get("training")
        if given is None:
            state = sys.modules["keras.src.backend.common.global_state"]
            given = getattr(state.get_global_attribute("current_call_ctx"), "training", None)
        return None if given is None else bool(given)

    def mask(self, layer: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        """The mask that Keras hands on with an array, where a layer takes one."""
        mask = getattr(args[0], "_keras_mask", None) if args else None
        takes = getattr(layer, "_call_has_mask_arg", False) or "mask" in getattr(
            layer._call_signature, "parameters", ()
        )
        return {"mask": mask} if mask is not None and takes else {}

    def hashes_of(self, variables: Any) -> Codes:
        return module_calls.hash_named((variable.name, variable) for variable in variables)

    def end(self, called: Called, result: Any) -> None:
        """A call has returned. The weights of a layer may have been made in it."""
        self.leave(called)
        named = [*module_calls.arrays(result)]
        called.content["outputs"] = module_calls.hash_named(named)
        called.content["exact"] = self.exact(named) or None
        called.content["weights"] = called.content["weights"] or self.hashes_of(called.layer._trainable_variables)
        called.done = True

    def leave(self, called: Called) -> None:
        """A call is over; if an exception has ended it, it has no line."""
        del self.stack[self.stack.index(called) :]

    def exact(self, named: Iterable[tuple[str, Any]]) -> Codes:
        """The hashes of the float64 copies of those arrays that have one."""
        if not self.doubles.on:
            return {}
        copies = [(name, self.doubles.copy(array)) for name, array in named if self.doubles.is_floating(array)]
        return module_calls.hash_named((name, copy) for name, copy in copies if copy is not None)

    def gradient(self, target: Any, sources: Any) -> None:
        """Gradients are taken: of the calls that a tape has recorded so far."""
        if self.waiting:
            calls, self.waiting = [called for called in self.waiting if called.done], []
            named = [*module_calls.arrays(target)]
            identities = _identities(self.tensorflow.nest.flatten(sources))
            self.passes.append(Pass(calls, module_calls.hash_named(named), self.exact(named), identities))

    def path(self, called: Called) -> str:
        """The path of a layer in its model: `encoder/dense`; `1:` before it in a second model, the class of one without weights."""
        root, layer = called.outermost.layer, called.layer
        if root.weights and not any(one is root for one in self.roots):
            self.roots.append(root)
        place = next((place for place, one in enumerate(self.roots) if one is root), None)
        prefix = f"{type(root).__name__}/" if place is None else f"{place}:" if place else ""
        path = str(getattr(layer, "path", None) or layer.name)
        name = "" if layer is root else path.removeprefix(f"{getattr(root, 'path', None) or root.name}/")
        return f"{prefix}{name}".rstrip("/")

    def before_apply(self, optimizer: Any, gradients: list[Any], variables: Any) -> None:
        """An optimizer has been given gradients: the passes that they may come from are written, and they, as they are."""
        step = module_calls.following()
        trained = list(variables) if variables is not None else optimizer._trainable_variables
        if module_calls.is_asked(step):
            self.write_passes(step, _identities(trained))
            observed = observed_optimizer(optimizer)
            named = [(variable_name(one, observed), gradient) for one, gradient in zip(trained, gradients)]
            named = [(name, gradient) for name, gradient in named if module_calls.is_array(gradient)]
            module_calls.write_backward(step, module_calls.hash_named(named), self.exact(named) or None)
        self.doubles.end()
        self.reset()

    def write_passes(self, step: int, trained: set[int]) -> None:
        number = 0
        for one in self.passes:
            if one.sources & trained:
                for called in one.calls:
                    number += 1
                    kind = type(called.layer).__name__
                    module_calls.write_call(step, number, self.path(called), kind, **called.content)
                number += 1
                module_calls.write_loss(step, number, one.loss, one.exact or None)

    def after_apply(self) -> None:
        """Lets functions be compiled again once the last step is over."""
        if module_calls.following() > max(module_calls.steps):
            self.tensorflow.config.run_functions_eagerly(self.eager)


def _identities(variables: Iterable[Any]) -> set[int]:
    """The identities of variables of Keras, and of those of TensorFlow that they hold."""
    variables = list(variables)
    held = [getattr(one, "value", None) for one in variables]
    return {id(one) for one in variables} | {id(one) for one in held if one is not None and not callable(one)}


def settings_of(layer: Any) -> dict[str, str]:
    """The options of a layer as text; none of a model, whose options are its layers."""
    if any(True for _ in layer._flatten_layers(include_self=False)):
        return {}
    try:
        config = layer.get_config()
    except Exception:  # a layer of the program's own need not have one
        return {}
    named = [(name, _plain(value)) for name, value in config.items() if name not in LEFT_OUT]
    return module_calls.settings([*named, ("dtype", str(layer.compute_dtype))])


def _plain(value: Any) -> Any:
    """An option as it is, or the name of the function that it describes."""
    described = isinstance(value, dict) and value.get("class_name") == "function"
    return value["config"] if described else value


def after_keras(keras: Any) -> None:
    """Watches the calls of layers, if REPRO_OBSERVE_MODULES names steps."""
    if not module_calls.steps or int(str(keras.__version__).split(".")[0]) < 3:
        return
    if backend() != "tensorflow":
        recorder.note(OTHER.format(backend()))
        return
    tensorflow = sys.modules["tensorflow"]
    calls = Calls(keras, tensorflow)
    tensorflow.config.run_functions_eagerly(True)
    warnings.filterwarnings("ignore", message="Even though the `tf.config.*run_functions_eagerly")  # tf.data stays fast
    os.register_at_fork(after_in_child=calls.reset)
    entries.add("layer begins", recorder.never_raise(calls.begin))
    entries.add("layer ends", recorder.never_raise(calls.end))
    entries.add("layer left", recorder.never_raise(calls.leave))
    entries.add("gradient", recorder.never_raise(calls.gradient))
    entries.add("gradients given", recorder.never_raise(calls.before_apply))
    entries.add("applied", recorder.never_raise(calls.after_apply))
    _watch_layers(keras.layers.Layer)
    _watch_tape(tensorflow.GradientTape)
    _watch_apply(sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer, calls)


def _watch_layers(kind: Any) -> None:
    call = kind.__call__

    @functools.wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = entries.entries["layer begins"](self, args, kwargs)
        if called is None:
            return call(self, *args, **kwargs)
        try:
            result = call(self, *args, **kwargs)
        except BaseException:
            entries.entries["layer left"](called)
            raise
        entries.entries["layer ends"](called, result)
        return result

    kind.__call__ = watched


def _watch_tape(kind: Any) -> None:
    gradient = kind.gradient

    @functools.wraps(gradient)
    def watched(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        entries.entries["gradient"](target, sources)
        return gradient(self, target, sources, *args, **kwargs)

    kind.gradient = watched


def _watch_apply(kind: Any, calls: Calls) -> None:
    apply = kind.apply

    @functools.wraps(apply)
    def watched(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        outermost, calls.applying = not calls.applying, True
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
        if outermost:
            entries.entries["gradients given"](self, grads, trainable_variables)
        try:
            return apply(self, grads, trainable_variables)
        finally:
            if outermost:
                calls.applying = False
                entries.entries["applied"]()

    kind.apply = watched
