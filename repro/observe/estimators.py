"""Steps of scikit-learn: each outermost call of an estimator's `fit` or `partial_fit`.

All of its methods that fit are made by one decorator, which is replaced. What a call changes is what the estimator
holds beside its parameters: `coef_`, `tree_`, `_predictors`. A fit within another one, also in its threads, is a part of it.
"""

import functools
import inspect
import itertools
import os
import sys
import threading
import weakref
from typing import Any, Optional

from . import entries, generators, hashing, recorder, scalars, states

MOST = 256  # the most arrays of an attribute that are hashed one by one
OTHERS = ("torch", "tensorflow", "jax")  # if one is imported, a fit prepares data: it would shift the steps' numbers
OLD = "scikit-learn {} is not observed: 1.3 or later is needed"
PREPARES = "scikit-learn: with PyTorch, TensorFlow or JAX in the same process, its fits are not observed"
THREADS = "scikit-learn: a fit that begins while another one runs, in another thread, counts as a part of that"


class Running:
    """The fits that are under way in this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.thread = 0  # the thread of the outermost call

    def begin(self) -> bool:
        """Counts a call that begins; True if it is the outermost one."""
        with self.lock:
            self.count += 1
            if self.count == 1:
                self.thread = threading.get_ident()
            elif self.thread != threading.get_ident():
                recorder.note(THREADS)
            return self.count == 1

    def end(self) -> None:
        with self.lock:
            self.count -= 1


running = Running()
estimators: dict[int, tuple[Any, int]] = {}  # by id: a weak reference and a number, in the order of first fits
numbers = itertools.count()


def after_sklearn_base(module: Any) -> None:
    """Replaces the decorator before any estimator is made with it."""
    fit_context = getattr(module, "_fit_context", None)
    if fit_context is None:
        recorder.note(OLD.format(getattr(sys.modules["sklearn"], "__version__", "?")))
        return
    entries.add("begin fit", running.begin)
    entries.add("end fit", running.end)
    entries.add("before fit", before)
    entries.add("after fit", after)
    os.register_at_fork(after_in_child=_reset_lock)

    @functools.wraps(fit_context)
    def watched_context(*args: Any, **kwargs: Any) -> Any:
        decorate = fit_context(*args, **kwargs)
        return lambda method: _watched(decorate(method))

    module._fit_context = watched_context


def _reset_lock() -> None:
    """Renews the lock in a forked child. What was under way still is: the child may be a worker of it."""
    running.lock = threading.Lock()


def _watched(method: Any) -> Any:
    """A method that fits. It names nothing of the observer but a module, so that its class can be pickled by value."""

    @functools.wraps(method)
    def watched(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        outermost = entries.entries["begin fit"]()
        try:
            begun = entries.entries["before fit"](estimator, method, args, kwargs) if outermost else None
            result = method(estimator, *args, **kwargs)
            if begun is not None:
                entries.entries["after fit"](estimator, begun)
            return result
        finally:
            entries.entries["end fit"]()

    return watched


@recorder.never_raise
def before(estimator: Any, method: Any, args: Any, kwargs: Any) -> Optional[recorder.Hashes]:
    """Hashes at the beginning of a step; empty if it is not due, None if it is not observed."""
    active = recorder.active
    if active is None or recorder.is_worker():
        return None
    if any(name in sys.modules for name in OTHERS):
        recorder.note(PREPARES)
        return None
    recorder.add_framework(sys.modules["sklearn"])
    known, index = estimators.get(id(estimator), (None, 0))
    first = known is None or known() is not estimator
    if first:
        index = next(numbers)
        estimators[id(estimator)] = (weakref.ref(estimator), index)
    if not active.is_due(active.steps + 1):
        return {}
    hashes: recorder.Hashes = {"generator": generators.hashes(), "scalars": {}}
    fitted = _add_state(hashes, estimator, str(index), 0)
    if first:
        hashes[recorder.INITIAL] = fitted
    hashes["batch"] = _batch(estimator, method, args, kwargs)
    return hashes


@recorder.never_raise
def after(estimator: Any, begun: recorder.Hashes) -> None:
    active = recorder.active
    assert active is not None
    number = active.count()
    if begun and active.is_due(number):
        index = estimators[id(estimator)][1]
        active.step(number, {**begun, "weights": _add_state({}, estimator, str(index), 0)})


def _batch(estimator: Any, method: Any, args: Any, kwargs: Any) -> dict[str, str]:
    """The arguments by their names: `X`, `y`, `sample_weight`."""
    arguments = dict(inspect.signature(method).bind(estimator, *args, **kwargs).arguments)
    codes = {name: states.hash_all(value, name) for name, value in [*arguments.items()][1:] if value is not None}
    return {name: code for name, code in codes.items() if code is not None}


def _add_state(hashes: recorder.Hashes, estimator: Any, name: str, depth: int) -> dict[str, str]:
    """The hashes of what an estimator has beside its parameters. Its numbers and its generators are added to the others."""
    parameters = estimator.get_params(deep=False)
    fitted: dict[str, str] = {}
    for key, value in vars(estimator).items():
        path = f"{name}.{key}"
        if states.is_generator(value):
            code = states.hash_all(value, path)
            hashes.setdefault("generator", {}).update({path: code} if code else {})
        elif key in parameters:
            scalars.add(hashes.setdefault("scalars", {}), path, value)
            for inner, child in hashing.leaves(value, path) if isinstance(value, (list, tuple)) else [(path, value)]:
                if hasattr(child, "get_params") and not isinstance(child, type) and depth < hashing.MAX_DEPTH:
                    fitted.update(_add_state(hashes, child, inner, depth + 1))
        elif not states.is_noise(key):
            fitted.update(_attribute(value, path, required=not key.startswith("_")))
    return fitted


def _attribute(value: Any, path: str, required: bool) -> dict[str, str]:
    """The hash of each array and of each object in an attribute; of very many, or of private ones, one of all."""
    leaves = list(itertools.islice(hashing.leaves(value, path), MOST + 1))
    if len(leaves) > MOST or not required:
        leaves = [(path, value)]
    codes = {name: states.hash_all(leaf, name, required) for name, leaf in leaves if not states.is_noise(name)}
    return {name: code for name, code in codes.items() if code is not None}
