"""Sums over replicas, in their order."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.python.framework import tensor_util
from tensorflow.python.ops import array_ops, gen_collective_ops

from repro.portable.backends.numpy import Array
from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose
from repro.portable.modes.tensorflow.dispatcher.graphs import calculated
from repro.portable.modes.tensorflow.dispatcher.types import as_float32, cast_back

MERGED: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


def _merged(given: Attributes, parts: Array) -> Array:
    """Rows of numbers, one after the other; halves are rounded once."""
    wide = as_float32(parts)
    total = wide[0]
    for each in wide[1:]:
        total = MERGED[given["merge_op"]](total, each)
    if given["final_op"] == "Div":
        total = total / total.dtype.type(len(parts))
    return cast_back(total, parts.dtype)


@compose("CollectiveReduceV2")
def reduced(given: Attributes, x: Any, group_size: Any, group_key: Any, instance_key: Any, *tokens: Any) -> Any:
    """Each replica gathers the numbers of all, and merges them itself."""
    gathered = gen_collective_ops.collective_gather_v2(
        array_ops.reshape(x, [1, -1]),
        group_size,
        group_key,
        instance_key,
        list(tokens),
        communication_hint=given["communication_hint"],
        timeout_seconds=given["timeout_seconds"],
    )
    number = tensor_util.constant_value(group_size)
    gathered.set_shape([None if number is None else int(number), x.shape.num_elements()])
    how = {"merge_op": given["merge_op"], "final_op": given["final_op"]}
    (result,) = calculated("collective_reduce", _merged, how, [gathered], [x.dtype], [[x.shape.num_elements()]])
    return array_ops.reshape(result, array_ops.shape(x))
