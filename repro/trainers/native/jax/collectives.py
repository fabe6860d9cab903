"""Collectives of a step, as few as it allows.

Each portable operation reduces over the ranks by itself: the largest exponent, and a sum. At each reduction all ranks wait
for one another. Here the program is put in another order, in which reductions that are ready at the same time are one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, jaxpr_as_fun

from repro.portable.definitions.ranks import SingleProcess

MAXIMUM, SUM = lax.pmax_p, lax.psum_p


def together(ranks: SingleProcess, function: Callable) -> Callable:
    """Join the collectives of a function of arrays; those in its loops and branches stay where they are."""
    if ranks.size == 1:
        return function

    def joined(*operands):
        program, results = jax.make_jaxpr(function, return_shape=True)(*operands)
        return jax.tree.unflatten(jax.tree.structure(results), _run(ranks, program, jax.tree.leaves(operands)))

    return joined


def _run(ranks: SingleProcess, program: ClosedJaxpr, operands: Sequence[Array]) -> list[Array]:
    """The results of a program: by turns, all that can be computed, and one collective for all that are ready."""
    results, left = program.jaxpr.outvars, program.jaxpr.eqns
    known = dict(zip([*program.jaxpr.constvars, *program.jaxpr.invars], [*program.consts, *operands], strict=True))
    while left:
        stage, left = _stage(left, set(known))
        wanted = {each for equation in left for each in equation.invars if not isinstance(each, Literal)} | {*results}
        made = [each for equation in stage for each in equation.outvars if each in wanted]
        part = program.jaxpr.replace(constvars=[], invars=[*known], outvars=made, eqns=stage)
        known |= zip(made, jaxpr_as_fun(ClosedJaxpr(part, ()))(*known.values()), strict=True)
        ready = [each for each in left if _is_collective(each) and all(operand in known for operand in each.invars)]
        maxima = [each for each in ready if each.primitive is MAXIMUM]
        ready = maxima or ready  # a sum may wait for others
        left = [each for each in left if each not in ready]
        if ready:
            collective = ranks.maximum if maxima else ranks.total
            reduced = collective(*(known[operand] for each in ready for operand in each.invars))
            known |= zip([result for each in ready for result in each.outvars], reduced, strict=True)
    return [each.val if isinstance(each, Literal) else known[each] for each in results]


def _stage(equations: Sequence[JaxprEqn], known: set[Any]) -> tuple[list[JaxprEqn], list[JaxprEqn]]:
    """The equations that can be computed without a collective, in their order, and the others."""
    stage, others = [], []
    for equation in equations:
        if _is_collective(equation) or not all(isinstance(each, Literal) or each in known for each in equation.invars):
            others.append(equation)
        else:
            stage.append(equation)
            known.update(equation.outvars)
    return stage, others


def _is_collective(equation: JaxprEqn) -> bool:
    return equation.primitive in (MAXIMUM, SUM)
