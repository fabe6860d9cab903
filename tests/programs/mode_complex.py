"""Complex numbers and Fourier transforms under portable numerics in one framework.

    python mode_complex.py pytorch|tensorflow|jax

Prints JSON: by operation the digest of the result of NUMBERS in complex64 and of its gradient, and the largest error of both beside
complex128 (not in JAX), as a share of the largest number. Operations that frameworks share have one name.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

random = np.random.Generator(np.random.PCG64(0))


def reals(*shape: int) -> np.ndarray:
    """Multiples of 2^-10, which no library rounds."""
    return (random.integers(-4096, 4096, shape) / 1024).astype(np.float32)


def numbers(*shape: int) -> np.ndarray:
    return (reals(*shape) + 1j * reals(*shape)).astype(np.complex64)


FUNCTIONS = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh log1p expm1 rsqrt sigmoid"
INVERSES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
ARGUMENTS: dict[str, list[np.ndarray]] = {
    **{name: [numbers(5, 7), numbers(5, 7)] for name in ("mul", "div")},
    **{name: [numbers(40)] for name in ("abs", "angle", "sgn", "exp", "log", "sqrt", "square")},
    **{name: [numbers(40)] for name in FUNCTIONS.split()},
    "pow": [numbers(40), numbers(40)],
    "cumprod": [numbers(9)],
    "sum": [numbers(30, 4)],
    "mean": [numbers(30, 4)],
    "cumsum": [numbers(9)],
    "matmul": [numbers(5, 37), numbers(37, 3)],
    **{name: [numbers(3, 6, 33)] for name in ("fft", "ifft", "fft2", "ifft2", "irfft", "irfft2")},
    **{name: [reals(3, 6, 33)] for name in ("rfft", "rfft2")},
    "fft of 500": [numbers(2, 500)],
    "fft of 5000": [numbers(2, 5000)],
    "fft of a prime": [numbers(1, 4099)],
    "rotation": [numbers(4, 6), reals(6) * 100],
}
Call = Callable[..., Any]


def pytorch() -> tuple[dict[str, Call], Call]:
    import torch

    def called(function: Call, arrays: list[np.ndarray]) -> list[np.ndarray]:
        given = [torch.from_numpy(x.copy()).requires_grad_() for x in arrays]
        y = function(*given)
        parts = torch.view_as_real(y.resolve_conj()) if y.is_complex() else y
        gradients = torch.autograd.grad(parts.sum(), given)
        return [each.detach().resolve_conj().numpy() for each in (y, *gradients)]

    functions: dict[str, Call] = {
        name: getattr(torch, name)
        for name in (*FUNCTIONS.split(), "mul", "div", "abs", "angle", "sgn", "exp", "log", "sqrt", "square", "pow")
    }
    functions |= {name: getattr(torch.fft, name) for name in ARGUMENTS if hasattr(torch.fft, name)}
    functions |= {
        "sum": lambda x: x.sum(0),
        "mean": lambda x: x.mean(0),
        "cumsum": lambda x: x.cumsum(0),
        "cumprod": lambda x: x.cumprod(0),
        "matmul": torch.matmul,
        **dict.fromkeys(("fft of 500", "fft of 5000", "fft of a prime"), torch.fft.fft),
        "rotation": lambda x, angle: x * torch.polar(torch.ones_like(angle), angle),
    }
    return functions, called


def jax() -> tuple[dict[str, Call], Call]:
    import jax
    from jax import lax
    from jax import numpy as jnp

    def called(function: Call, arrays: list[np.ndarray]) -> list[np.ndarray]:
        def total(*given: Any) -> Any:
            y = function(*given)
            return ((jnp.real(y).sum() + jnp.imag(y).sum()) if jnp.iscomplexobj(y) else y.sum()), y

        both = jax.jit(jax.value_and_grad(total, tuple(range(len(arrays))), has_aux=True))
        (_, y), gradients = both(*arrays)
        return [np.asarray(y), *(np.conj(each) for each in gradients)]  # JAX has PyTorch's conjugates

    functions: dict[str, Call] = {name: getattr(jnp, name) for name in ("abs", "angle", "exp", "log", "sqrt", "square")}
    functions |= {
        name: getattr(jnp, INVERSES.get(name, name), None) or getattr(lax, name) for name in FUNCTIONS.split()[:-1]
    }
    functions |= {name: getattr(jnp.fft, name) for name in ARGUMENTS if hasattr(jnp.fft, name)}
    functions |= {
        "sigmoid": lax.logistic,
        "pow": jnp.power,
        "cumprod": lax.cumprod,
        "mul": jnp.multiply,
        "div": jnp.divide,
        "sgn": jnp.sign,
        "sum": lambda x: x.sum(0),
        "mean": lambda x: x.mean(0),
        "cumsum": jnp.cumsum,
        "matmul": jnp.matmul,
        **dict.fromkeys(("fft of 500", "fft of 5000", "fft of a prime"), jnp.fft.fft),
        "rotation": lambda x, angle: x * jnp.exp(1j * angle),
    }
    return functions, called


def tensorflow() -> tuple[dict[str, Call], Call]:
    import tensorflow as tf

    def called(function: Call, arrays: list[np.ndarray]) -> list[np.ndarray]:
        @tf.function
        def compiled(*given: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(given)
                y = function(*given)
                real = tf.reduce_sum(tf.math.real(y))
                total = real + tf.reduce_sum(tf.math.imag(y)) if y.dtype.is_complex else real
            return y, *tape.gradient(total, given)

        return [np.asarray(each) for each in compiled(*map(tf.constant, arrays))]

    names = (*FUNCTIONS.split(), "pow", "abs", "angle", "exp", "log", "sqrt", "square")
    functions: dict[str, Call] = {name: getattr(tf.math, name) for name in names}
    functions |= {name: getattr(tf.signal, name) for name in ("fft", "ifft", "rfft")}
    functions |= {
        "mul": tf.multiply,
        "div": tf.divide,
        "sgn": tf.sign,
        "sum": lambda x: tf.reduce_sum(x, 0),
        "mean": lambda x: tf.reduce_mean(x, 0),
        "cumsum": tf.cumsum,
        "cumprod": tf.math.cumprod,
        "matmul": tf.matmul,
        "irfft": tf.signal.irfft,
        "irfft2": tf.signal.irfft2d,
        **{f"{name}fft2": getattr(tf.signal, f"{name}fft2d") for name in ("", "i", "r")},
        **dict.fromkeys(("fft of 500", "fft of 5000", "fft of a prime"), tf.signal.fft),
        "rotation": lambda x, angle: x * tf.exp(tf.complex(tf.zeros_like(angle), angle)),
    }
    return functions, called


WIDE = {np.dtype(np.complex64): np.complex128, np.dtype(np.float32): np.float64}


def largest_error(y: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(y - exact).max() / np.abs(exact).max())


def main() -> None:
    import importlib

    name = sys.argv[1]
    portable = importlib.import_module(f"repro.portable.{name}")
    functions, called = {"pytorch": pytorch, "jax": jax, "tensorflow": tensorflow}[name]()
    results = {}
    exact: dict[str, list[np.ndarray]] = {}
    if name != "jax":  # which must not compute before
        exact = {
            each: called(functions[each], [x.astype(WIDE[x.dtype]) for x in ARGUMENTS[each]]) for each in functions
        }
    with portable.enable():
        for each, function in functions.items():
            arrays = called(function, ARGUMENTS[each])
            digests = [hashlib.sha256((x + 0).tobytes()).hexdigest()[:16] for x in arrays]
            results[each] = digests, [largest_error(x, y) for x, y in zip(arrays, exact.get(each, ()), strict=False)]
    print(json.dumps(results))


if __name__ == "__main__":
    main()
