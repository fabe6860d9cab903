"""Calls of TensorFlow's raw operations: every one of the registry that takes floating-point numbers."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_def_registry

from programs.fuzz import tensorflow_indices
from programs.fuzz.cases import Case
from programs.fuzz.tensorflow_arguments import TABLE
from programs.fuzz.tensorflow_draws import KINDS, TYPES, Draw, arrays, gradients, results
from repro.portable.modes.tensorflow.dispatcher import registry

assert tensorflow_indices.SEEDS  # its arguments are in the table
FLOATS = {types_pb2.DT_HALF, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, types_pb2.DT_BFLOAT16}
OF_ELEMENTS = ("plain", "range", "special", "empty", "scalar", "huge", "tiny", "large", "graph")
OTHERS = ("plain", "graph", "special", "huge", "tiny")
ALL_TYPES = ("plain", "range")
"""Kinds of numbers that each type is tried with; the others take turns with the types."""
RESULTS = {"FusedBatchNormV3": 5, "FusedBatchNormGrad": 3, "FusedBatchNormGradV2": 3, "FusedBatchNormGradV3": 3}
"""How many results count: others are room for a GPU's numbers."""
ENDLESS = ("Polygamma", "Zeta")
"""TensorFlow's own take hours for arguments from the whole range."""


@cache
def takes_fractions(name: str) -> bool:
    """True if an argument or a result of an operation may be of a floating-point type."""
    operation = op_def_registry.get(name)
    return any(_types(operation, each) & FLOATS for each in (*operation.input_arg, *operation.output_arg))


def _types(operation: Any, argument: Any) -> set[int]:
    """The types that an argument may have."""
    name = argument.type_attr or argument.type_list_attr
    if not name:
        return {argument.type}
    allowed = next(each for each in operation.attr if each.name == name).allowed_values.list.type
    return set(allowed) or FLOATS


@cache
def of_elements(name: str) -> int:
    """The number of arguments of an operation that takes one or two arrays of one type and needs nothing else."""
    operation = op_def_registry.get(name)
    attributes = {each.type_attr for each in operation.input_arg}
    needs = [each for each in operation.attr if not each.HasField("default_value") and each.name not in attributes]
    several = any(each.number_attr or each.type_list_attr for each in operation.input_arg)
    fractions = all(_types(operation, each) & FLOATS for each in operation.input_arg)
    number = len(operation.input_arg)
    single = fractions and len(attributes) == 1 and not needs and not several and not operation.is_stateful
    return number if single and number <= 2 else 0


def without_arguments() -> list[str]:
    """Operations of floating-point numbers that have none here."""
    return [name for name in _names() if name not in TABLE and not of_elements(name)]


def _names() -> list[str]:
    names = (each.name for each in registry.operations())
    return sorted(name for name in names if hasattr(tf.raw_ops, name) and takes_fractions(name))


def cases(everything: bool) -> Iterator[Case]:
    """All kinds of numbers in all types, or one by turns. An operation that is refused is called once."""
    left_out, turns = {*without_arguments(), *ENDLESS}, cycle(range(len(OF_ELEMENTS) * len(TYPES)))
    for name in _names():
        if name in left_out:
            continue
        kinds = OF_ELEMENTS if of_elements(name) and name not in TABLE else OTHERS
        samples = [(kind, TYPES[place % len(TYPES)]) for place, kind in enumerate(kinds) if kind not in ALL_TYPES]
        samples = [(kind, dtype) for kind in ALL_TYPES if kind in kinds for dtype in TYPES] + samples
        if registry.kind_of(name) == "refused":
            samples = samples[:1]
        elif not everything:
            samples = [samples[next(turns) % len(samples)]]
        for kind, dtype in samples:
            yield from _calls(name, kind, dtype)


def _calls(name: str, kind: str, dtype: str) -> Iterator[Case]:
    yield Case(name, f"{dtype} {kind}", lambda double: _computed(name, kind, dtype, double))
    if kind in ("plain", "graph") or (kind == "range" and name != "Digamma"):  # whose gradient is Polygamma
        yield Case(name, f"{dtype} {kind} gradients", lambda double: _differentiated(name, kind, dtype, double))


def _computed(name: str, kind: str, dtype: str, double: bool) -> list[np.ndarray]:
    given = _given(name, kind, dtype, double)
    variables = [each for each in given.values() if isinstance(each, tf.Variable)]
    values = {key: each.handle if isinstance(each, tf.Variable) else each for key, each in given.items()}
    numbers = arrays(results(_function(name), values, kind == "graph"))
    return numbers[: RESULTS.get(name)] + arrays(variables)


def _differentiated(name: str, kind: str, dtype: str, double: bool) -> list[np.ndarray]:
    given = _given(name, kind, dtype, double)
    if any(isinstance(each, tf.Variable) for each in given.values()):
        return []
    return arrays(gradients(_function(name), given, kind == "graph"))


def _given(name: str, kind: str, dtype: str, double: bool) -> dict[str, Any]:
    draw = Draw(name, dtype, kind if kind in KINDS else "plain", double)
    if name in TABLE:
        given = TABLE[name](draw)
        known = inspect.signature(_function(name)).parameters
        return {key: each for key, each in given.items() if key in known}
    keys = list(inspect.signature(_function(name)).parameters)[: of_elements(name)]
    values = draw.range(len(keys)) if kind == "range" else [draw.elements() for _ in keys]
    return dict(zip(keys, values, strict=True))


def _function(name: str) -> Callable[..., Any]:
    return getattr(tf.raw_ops, name)
