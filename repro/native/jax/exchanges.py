"""Exchanges between ranks, as few as a step allows.

Portable operations ask the ranks each for itself: for the largest exponent, and for a sum. Each time all ranks wait for
one another. What can be asked at the same time is asked at once here, by another order of the program.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, jaxpr_as_fun

from repro.run.ranks import SingleProcess

MAXIMUM, SUM = lax.pmax_p, lax.psum_p


def together(ranks: SingleProcess, function: Callable) -> Callable:
    """The same function of arrays; exchanges in its loops and branches stay where they are."""
    if ranks.size == 1:
        return function

    def joined(*operands):
        program, results = jax.make_jaxpr(function, return_shape=True)(*operands)
        return jax.tree.unflatten(jax.tree.structure(results), _run(ranks, program, jax.tree.leaves(operands)))

    return joined


def _run(ranks: SingleProcess, program: ClosedJaxpr, operands: Sequence[Array]) -> list[Array]:
    """What a program gives: by turns, all that can be computed, and an exchange of all that was waited for."""
    results, left = program.jaxpr.outvars, program.jaxpr.eqns
    known = dict(zip([*program.jaxpr.constvars, *program.jaxpr.invars], [*program.consts, *operands], strict=True))
    while left:
        stage, left = _stage(left, set(known))
        wanted = {each for equation in left for each in equation.invars if not isinstance(each, Literal)} | {*results}
        made = [each for equation in stage for each in equation.outvars if each in wanted]
        part = program.jaxpr.replace(constvars=[], invars=[*known], outvars=made, eqns=stage)
        known |= zip(made, jaxpr_as_fun(ClosedJaxpr(part, ()))(*known.values()), strict=True)
        asked = [each for each in left if _exchanges(each) and all(operand in known for operand in each.invars)]
        maxima = [each for each in asked if each.primitive is MAXIMUM]
        asked = maxima or asked  # a sum may wait for others
        left = [each for each in left if each not in asked]
        if asked:
            exchange = ranks.maximum if maxima else ranks.total
            parts = exchange(*(known[operand] for each in asked for operand in each.invars))
            known |= zip([result for each in asked for result in each.outvars], parts, strict=True)
    return [each.val if isinstance(each, Literal) else known[each] for each in results]


def _stage(equations: Sequence[JaxprEqn], known: set[Any]) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
    """Those that can be computed without an exchange, in their order, and the others."""
    stage, others = [], []
    for equation in equations:
        if _exchanges(equation) or not all(isinstance(each, Literal) or each in known for each in equation.invars):
            others.append(equation)
        else:
            stage.append(equation)
            known.update(equation.outvars)
    return stage, others


def _exchanges(equation: JaxprEqn) -> bool:
    return equation.primitive in (MAXIMUM, SUM)
