"""Gradients of TensorArrays whose places are read several times, in TensorFlow's mode.

    python tensorflow_arrays.py

Prints JSON.
"""

import json
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from repro.portable.modes import tensorflow as portable
from repro.portable.modes.common.refusal import RefusedError

portable.enable()
v1 = tf.compat.v1
RUNS = 40
FACTORS = 1e8, 1.0, -1e8, 3.0
"""Their sum, one after the other in float32, depends on their order."""


def array(x: Any) -> Any:
    return v1.TensorArray(tf.float32, size=x.shape[0], clear_after_read=False).unstack(x)


def reads(x: Any) -> Any:
    """One place, by an operation each."""
    numbers = array(x)
    return sum(numbers.read(0) * factor for factor in FACTORS)


def read_and_gathered(x: Any) -> Any:
    numbers = array(x)
    gathered = tf.reduce_sum(numbers.gather([0, 0]) * tf.constant(FACTORS[:2]))
    return numbers.read(0) * FACTORS[3] + gathered + numbers.read(0) * FACTORS[2]


def turns(x: Any) -> Any:
    """One place, by each turn of a loop."""
    numbers, factors = array(x), tf.constant(FACTORS)

    def turn(number: Any, total: Any) -> Any:
        return number + 1, total + numbers.read(0) * factors[number]

    return v1.while_loop(lambda number, _: number < len(FACTORS), turn, (0, 0.0))[1]


def loop_and_beyond(x: Any) -> Any:
    """One place, in a loop and after it."""
    numbers = array(x)
    body = lambda number, total: (number + 1, total + numbers.read(number))  # noqa: E731
    return v1.while_loop(lambda number, _: number < x.shape[0], body, (0, 0.0))[1] + numbers.read(0)


def results(case: Callable[..., Any]) -> list[tuple[float, ...]]:
    """The gradients that several runs of a graph give, each once."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2])
        gradient = tf.gradients(case(x), x)
        return sorted({tuple(session.run(gradient, {x: [1.0, 2.0]})[0].tolist()) for _ in range(RUNS)})


def refusal(case: Callable[..., Any]) -> str:
    try:
        results(case)
    except RefusedError as error:
        return str(error)
    return "passed"


def gathered() -> Any:
    x, factors = tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0, 30.0, 40.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        numbers = tf.TensorArray(tf.float32, size=2, clear_after_read=False).unstack(x)
        y = numbers.gather([0, 0, 1, 0]) * factors
    return tape.gradient(y, x)


if __name__ == "__main__":
    made = {"eager": gathered().numpy().tolist(), "graph": tf.function(gathered)().numpy().tolist()}
    v1.disable_control_flow_v2()
    cases = {case.__name__: results(case) for case in (reads, read_and_gathered, turns)}
    print(json.dumps({"gathered": made, "cases": cases, "refused": refusal(loop_and_beyond)}))
