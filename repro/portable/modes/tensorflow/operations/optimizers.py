"""Fused steps of optimizers, operation by operation: of variables, numbers and a gradient.

Keras's own optimizers are made of operations already; these are what tf.compat.v1 and tf.raw_ops call.
"""

from collections.abc import Callable
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes
from tensorflow.python.ops import control_flow_ops, gen_math_ops, gen_resource_variable_ops

from repro.portable.modes.tensorflow.dispatcher.dispatch import Attributes, compose

root, square = gen_math_ops.sqrt, gen_math_ops.square
Step = Callable[..., tuple[Any, ...]]


def step(name: str, variables: int) -> Callable[[Step], Step]:
    """Registers a function of attributes, the values of a number of variables, and of what follows: their new values."""

    def register(function: Step) -> Step:
        @compose(name)
        def stepped(given: Attributes, *inputs: Any) -> Any:
            resources, rest = inputs[:variables], inputs[variables:]
            dtype = dtypes.as_dtype(rest[-1].dtype)
            values = [gen_resource_variable_ops.read_variable_op(each, dtype) for each in resources]
            results = function(given, *values, *rest)
            assigned = [
                gen_resource_variable_ops.assign_variable_op(resource, value)
                for resource, value in zip(resources, results, strict=True)
            ]
            return [] if context.executing_eagerly() else control_flow_ops.group(*assigned)

        return function

    return register


@step("ResourceApplyGradientDescent", 1)
def descent(given: Attributes, weight: Any, rate: Any, gradient: Any) -> tuple[Any, ...]:
    return (weight - rate * gradient,)


@step("ResourceApplyMomentum", 2)
def momentum_of_gradients(
    given: Attributes, weight: Any, sum_: Any, rate: Any, gradient: Any, momentum: Any
) -> tuple[Any, ...]:
    sum_ = sum_ * momentum + gradient
    if given["use_nesterov"]:
        return weight - (gradient * rate + sum_ * momentum * rate), sum_
    return weight - rate * sum_, sum_


@step("ResourceApplyKerasMomentum", 2)
def momentum_of_steps(
    given: Attributes, weight: Any, sum_: Any, rate: Any, gradient: Any, momentum: Any
) -> tuple[Any, ...]:
    sum_ = sum_ * momentum - gradient * rate
    return weight + (sum_ * momentum - gradient * rate if given["use_nesterov"] else sum_), sum_


@step("ResourceApplyAdam", 3)
def adam(
    given: Attributes,
    weight: Any,
    first: Any,
    second: Any,
    power1: Any,
    power2: Any,
    rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    gradient: Any,
) -> tuple[Any, ...]:
    alpha = rate * root(1.0 - power2) / (1.0 - power1)
    first = first + (gradient - first) * (1.0 - beta1)
    second = second + (square(gradient) - second) * (1.0 - beta2)
    ahead = first * beta1 + gradient * (1.0 - beta1) if given["use_nesterov"] else first
    return weight - ahead * alpha / (root(second) + epsilon), first, second


@step("ResourceApplyAdagrad", 2)
def adagrad(given: Attributes, weight: Any, squares: Any, rate: Any, gradient: Any) -> tuple[Any, ...]:
    squares = squares + square(gradient) if given["update_slots"] else squares
    return weight - gradient * rate / root(squares), squares


@step("ResourceApplyAdagradV2", 2)
def adagrad_with_epsilon(
    given: Attributes, weight: Any, squares: Any, rate: Any, epsilon: Any, gradient: Any
) -> tuple[Any, ...]:
    squares = squares + square(gradient) if given["update_slots"] else squares
    return weight - gradient * rate / (root(squares) + epsilon), squares


@step("ResourceApplyRMSProp", 3)
def rmsprop(
    given: Attributes,
    weight: Any,
    squares: Any,
    sum_: Any,
    rate: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    gradient: Any,
) -> tuple[Any, ...]:
    squares = squares + (square(gradient) - squares) * (1.0 - rho)
    sum_ = sum_ * momentum + gradient * rate / root(squares + epsilon)
    return weight - sum_, squares, sum_


@step("ResourceApplyAdadelta", 3)
def adadelta(
    given: Attributes, weight: Any, squares: Any, updates: Any, rate: Any, rho: Any, epsilon: Any, gradient: Any
) -> tuple[Any, ...]:
    squares = squares * rho + square(gradient) * (1.0 - rho)
    update = root(updates + epsilon) / root(squares + epsilon) * gradient
    return weight - rate * update, squares, updates * rho + square(update) * (1.0 - rho)
