"""A program of JAX, computed once more in float64.

All that the program computes in floats, bfloat16 too, is computed in float64, from the same inputs. Operations that make
floats of bits, as random numbers do, give what they give in float32. One that has no float64 is computed in float32.
"""

import functools
import sys
from typing import Any

from . import jax_reports

DTYPES = ("new_dtype", "preferred_element_type", "dtype", "out_dtype")  # parameters that may name float32
BITS = ("bitcast_convert_type", "nextafter", "reduce_precision", "pure_callback", "rng_uniform")
SILENT = ("debug_callback", "debug_print")  # the program's own: once is enough
CALLS = (
    *("jit", "pjit", "xla_call", "core_call", "closed_call", "core_closed_call", "remat", "remat2", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call"),
)  # operations that run another program
BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")  # their parameters that may hold it


def run(jaxpr: Any, constants: Any, *arguments: Any) -> list[Any]:
    """The results of a jaxpr, whose floats are float64, within `jax.enable_x64`.

    A report within it is made with these values. Raises what JAX raises, where an operation can be computed in neither type,
    and ValueError of operations that do more than compute.
    """
    values: dict[Any, Any] = {}
    values.update(zip(jaxpr.constvars, map(widened, constants)))
    values.update(zip(jaxpr.invars, map(widened, arguments)))
    for equation in jaxpr.eqns:
        inputs = [widened(_literal(each)) if hasattr(each, "val") else values[each] for each in equation.invars]
        values.update(zip(equation.outvars, map(widened, _results(equation, inputs))))
    return [widened(_literal(each)) if hasattr(each, "val") else values[each] for each in jaxpr.outvars]


def widened(value: Any) -> Any:
    """A float or complex array in its widest type; any other as it is."""
    jax = sys.modules["jax"]
    dtype = _wide(value.dtype)
    if dtype == value.dtype:
        return value
    return (
        value.astype(dtype)
        if isinstance(value, sys.modules["numpy"].ndarray)
        else jax.lax.convert_element_type(value, dtype)
    )


def _wide(dtype: Any) -> Any:
    numpy, floats = sys.modules["numpy"], sys.modules["jax.numpy"]
    if floats.issubdtype(dtype, floats.floating):
        return numpy.dtype("float64")
    return numpy.dtype("complex128") if floats.issubdtype(dtype, floats.complexfloating) else dtype


def _literal(literal: Any) -> Any:
    return sys.modules["numpy"].asarray(literal.val, literal.aval.dtype)


def _results(equation: Any, inputs: list[Any]) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if jax_reports.is_report(equation):
        _report(params["receive"].exactly, inputs)
        return []
    if name in SILENT:
        return []
    if name == "io_callback":
        raise ValueError("it calls io_callback")
    if name in LOOPS:
        return list(LOOPS[name](params, inputs))
    if name in CALLS:
        return _run_body(next(params[each] for each in BODIES if each in params), *inputs)
    if name not in BITS:
        try:
            return _bound(equation, inputs, {**params, **_wide_params(params)})
        except Exception:  # it has no float64
            pass
    return _bound(equation, [_narrowed(value, each.aval) for value, each in zip(inputs, equation.invars)], params)


def _report(receive: Any, arrays: list[Any]) -> None:
    """Reports arrays. float64 goes as its bits: JAX rounds what it hands to a callback in a thread that has not enabled it."""
    wide = [str(array.dtype) == "float64" for array in arrays]
    bits = [_bits(array) if is_wide else array for array, is_wide in zip(arrays, wide)]
    jax_reports.report(functools.partial(_receive, receive, wide), bits)


def _bits(array: Any) -> Any:
    jax = sys.modules["jax"]
    return jax.lax.bitcast_convert_type(jax.numpy.asarray(array), sys.modules["jax.numpy"].uint32)


def _receive(receive: Any, wide: list[bool], *arrays: Any) -> None:
    """Gives arrays to `receive`, which raises nothing, as all that a program calls."""
    numpy = sys.modules["numpy"]
    values = [numpy.array(array) for array in arrays]
    receive(*(each.view("float64")[..., 0] if is_wide else each for each, is_wide in zip(values, wide)))


def _run_body(body: Any, *inputs: Any) -> list[Any]:
    """A jaxpr, which may be closed over its constants."""
    return run(getattr(body, "jaxpr", body), getattr(body, "consts", ()), *inputs)


def _bound(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    results = equation.primitive.bind(*inputs, **params)
    return list(results) if equation.primitive.multiple_results else [results]


def _wide_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that name a type, say how float32 is multiplied, or hold a program, as that by which `scatter` adds."""
    numpy = sys.modules["numpy"]
    wide = {name: _wide(numpy.dtype(params[name])) for name in DTYPES if params.get(name) is not None}
    wide |= {name: _wide_body(value) for name, value in params.items() if hasattr(value, "eqns")}
    return {**wide, "precision": None} if "precision" in params else wide


def _wide_body(body: Any) -> Any:
    jax, variables = sys.modules["jax"], getattr(body, "jaxpr", body).invars
    given = [jax.ShapeDtypeStruct(each.aval.shape, _wide(each.aval.dtype)) for each in variables]
    made = jax.make_jaxpr(functools.partial(_run_body, body))(*given)
    return made if hasattr(body, "jaxpr") else made.jaxpr


def _narrowed(value: Any, aval: Any) -> Any:
    if value.dtype == aval.dtype:
        return value
    return sys.modules["jax"].lax.convert_element_type(value, aval.dtype)


def _scan(params: dict[str, Any], inputs: list[Any]) -> Any:
    constants, carry = params["num_consts"], params["num_consts"] + params["num_carry"]

    def body(carried: Any, rows: Any) -> Any:
        results = _run_body(params["jaxpr"], *inputs[:constants], *carried, *rows)
        return results[: params["num_carry"]], results[params["num_carry"] :]

    last, stacked = sys.modules["jax"].lax.scan(
        body, inputs[constants:carry], inputs[carry:], length=params["length"], reverse=params["reverse"]
    )
    return [*last, *stacked]


def _while(params: dict[str, Any], inputs: list[Any]) -> Any:
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    goes_on = functools.partial(_run_body, params["cond_jaxpr"], *inputs[:first])
    body = functools.partial(_run_body, params["body_jaxpr"], *inputs[first:second])
    return sys.modules["jax"].lax.while_loop(
        lambda carried: goes_on(*carried)[0], lambda carried: body(*carried), inputs[second:]
    )


def _cond(params: dict[str, Any], inputs: list[Any]) -> Any:
    branches = [functools.partial(_run_body, branch) for branch in params["branches"]]
    return sys.modules["jax"].lax.switch(inputs[0], branches, *inputs[1:])


LOOPS = {"scan": _scan, "while": _while, "cond": _cond}
