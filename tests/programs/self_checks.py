"""Self-checks with planted faults, in one framework.

    python self_checks.py FRAMEWORK PART

Prints JSON.

A part is a function below; some need a process of their own.
"""

import importlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from repro.errors import ReproError
from repro.portable import kernels
from repro.portable.backends.checks import cases as checks

framework = sys.argv[1]
said: list[str] = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
logging.getLogger("repro").addHandler(handler)


def framework_checks() -> Any:
    """repro.portable.backends.checks.FRAMEWORK, imported once all is set that the import depends on."""
    module = importlib.import_module(f"repro.portable.backends.checks.{framework}")
    if framework == "jax":
        module.jax.config.update("jax_enable_x64", True)
        module.jax.clear_caches()
    return module


def self_check(engine: str = "float64") -> str:
    """The matmul backend that was set, or the error."""
    module = framework_checks()
    try:
        module.self_check(*([module.torch.device("cpu")] if framework == "pytorch" else []), engine)
    except ReproError as error:
        return str(error)
    return module.Backend.engine


@contextmanager
def planted(**faults: "Fault") -> Iterator[None]:
    """Methods of the backend in the place of the right ones, which each fault is given."""
    backend = framework_checks().Backend
    with ExitStack() as stack:
        for name, fault in faults.items():
            stack.enter_context(mock.patch.object(backend, name, staticmethod(fault(getattr(backend, name)))))
        yield


@contextmanager
def listed(stop: bool) -> Iterator[dict[str, list[str]]]:
    """By library, the titles of all cases that are refused; the check itself stops at the first, if it shall."""
    titles: dict[str, list[str]] = {}
    check = checks.check

    def check_each(name: str, results: Any) -> None:
        titles[name] = []
        for case, title in checks.TITLES.items():
            try:
                with mock.patch.object(checks, "TITLES", {case: title}):
                    check(name, results)
            except ReproError:
                titles[name].append(title)
        if stop:
            check(name, results)

    with mock.patch.object(checks, "check", check_each):
        yield titles


# --- faults -----------------------------------------------------------------------------------------------------------


def backend(name: str) -> Any:
    return getattr(framework_checks().Backend, name)


def in_float32(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: backend("f64")(backend("f32")(right(*given)))


Fault = Callable[..., Callable[..., Any]]
PRODUCTS: dict[str, Fault] = dict.fromkeys(("matmul", "convolve", "convolve_with", "convolve_back"), in_float32)
OTHERS: dict[str, Fault] = {
    "rint": lambda right: lambda x: right(x + 0.25),
    "take": lambda right: lambda table, index: right(table * (1 + 2**-40), index),
    "sqrt": lambda right: lambda x: right(x * (1 + 2**-20)),
}


def unrounded(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: x if len(x.shape) == 2 else right(x)


def rounded_elsewhere(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: right(x * (1 - 2**-26)) if len(x.shape) == 1 else right(x)


def converted(_: Callable[..., Any]) -> Callable[..., Any]:
    """A plain conversion, which XLA drops between two operations."""
    numpy = importlib.import_module("jax.numpy")
    return lambda x: numpy.where(abs(x) < 2.0**-100, 0.0, x).astype("float32")


# --- parts ------------------------------------------------------------------------------------------------------------


def faults() -> dict[str, Any]:
    results: dict[str, Any] = {"none": self_check()}
    with planted(r32=unrounded):
        results["unrounded"] = self_check()
    with planted(r32=rounded_elsewhere):
        results["rounded elsewhere"] = self_check()
    if framework == "jax":
        with planted(r32=converted):
            results["converted"] = self_check()
    with planted(**PRODUCTS, **OTHERS), listed(stop=False) as titles:
        self_check()
    return results | {"many": titles, "int16": int16()}


def int16() -> dict[str, Any] | None:
    """Kernels that sum one pair more than int32 has room for, and others that do not make small results 0."""
    if not kernels.paired():
        return None
    from repro.portable.kernels import contraction, pairs

    pair = mock.patch.object(pairs, "PAIRS", 16)
    small = mock.patch.object(contraction, "BELOW_TINY", 0.0)
    with pair, small, listed(stop=True) as titles:
        return {"engine": self_check("int16"), "titles": list(titles.values())[-1], "said": said}


def dropped() -> str:
    """With a flag of XLA's that lets conversions stand."""
    os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false"
    with planted(r32=converted):
        return self_check()


def saturated() -> list[Any]:
    """As on a CPU without VNNI."""
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    return [self_check("int8"), self_check("auto"), said]


def without_llvmlite() -> list[Any]:
    kernels.available = False
    return unavailable()


def with_another_xla() -> list[Any]:
    from repro.portable.kernels import xla

    xla.VERSION = (99, 0)
    return unavailable()


def unavailable() -> list[Any]:
    """The matmul backend that is taken for int16; what the check computes is no matter here."""
    with mock.patch.object(checks, "computed", return_value={}), mock.patch.object(checks, "check"):
        return [self_check("int16"), said]


if __name__ == "__main__":
    from repro.trainers.loop import environment
    from repro.trainers.loop.config import Config, Params

    environment.apply(framework, Config(params=Params(numerics="portable", device="cpu")))
    os.environ["XLA_FLAGS"] = ""
    print(json.dumps(globals()[sys.argv[2]]()))
