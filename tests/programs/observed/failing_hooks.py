"""Small trainings in which a hook of the observer fails once.

Arguments: FOLDER, then pairs of a scenario of another program here and a hook. Each pair trains once, and is recorded in
FOLDER/HOOK; FOLDER/SCENARIO has the same without a fault. A hook that is called again and again fails at its second call.
"""

import functools
import importlib
import itertools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

package = sys.modules["_repro.observe"].__name__
recorder, hashing, watched = (
    importlib.import_module(f"{package}.{name}") for name in ("recorder", "hashing", "watched")
)
calls: Counter[str] = Counter()
failing: list[tuple[str, int]] = []


def faulty(function: Callable, name: str) -> Callable:
    @functools.wraps(function)
    def wrapped(*args: object, **kwargs: object) -> object:
        calls[name] += 1
        if (name, calls[name]) in failing:
            raise RuntimeError("planted")
        return function(*args, **kwargs)

    return wrapped


never_raise = recorder.never_raise


def guarded(function: Callable) -> Callable:
    return never_raise(faulty(function, f"{function.__module__.split('.')[-1]}.{function.__name__}"))


recorder.never_raise = guarded
importlib.reload(watched)  # the watchers of frameworks come when those are imported
hashing.hash_leaf = faulty(hashing.hash_leaf, "hashing.hash_leaf")


def train(train_once: Callable[[], None], folder: Path) -> Counter[str]:
    """One training, recorded as if its process had just begun; how often each hook was called."""
    calls.clear()
    recorder.active = recorder.Recorder(str(folder), 1)
    watched.processes.clear()
    for name, clear in CLEAR.items():
        if f"{package}.{name}" in sys.modules:
            clear(sys.modules[f"{package}.{name}"])
    train_once()
    if f"{package}.calls" in sys.modules:
        sys.modules[f"{package}.calls"]._end()  # as Python does when the process ends
    recorder.active.end()
    return Counter(calls)


def forget_calls(module: ModuleType) -> None:
    """Has no compiled function been called or traced yet."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    for function in (reference() for reference in module.functions):
        if function is not None:
            function.reset()
    module.functions.clear()
    sys.modules[f"{package}.jax_lines"].gradients.clear()


CLEAR: dict[str, Callable] = {
    "calls": forget_calls,
    "pytorch": lambda module: module.observer and module.observer.reset(),
    "jax": lambda module: (module.indices.clear(), module.started.clear()),
    "estimators": lambda module: (module.estimators.clear(), setattr(module, "numbers", itertools.count())),
    "boosting": lambda module: (
        module.boosters.clear(),
        module.written.clear(),
        setattr(module, "numbers", itertools.count()),
    ),
    "keras": lambda module: (module.optimizers.clear(), sys.modules["keras"].utils.clear_session()),
}


def watching(_: str) -> None:
    import repro

    for step in range(1, 5):
        repro.watch(step, {"w": step / 2})


if __name__ == "__main__":
    folder, program, *pairs = sys.argv[1:]
    sys.path.append(str(Path(__file__).parent / "estimators"))  # programs with stand-ins for libraries
    scenarios = {"watch": watching} if program == "watch" else importlib.import_module(program).SCENARIOS
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        scenario, hook = pair.rsplit(":", 1)
        train_once = functools.partial(scenarios[scenario], scenario)
        if scenario not in counts:
            counts[scenario] = train(train_once, Path(folder) / scenario)
        assert counts[scenario][hook], f"{hook} is not called in {scenario}: {counts[scenario]}"
        failing[:] = [(hook, min(counts[scenario][hook], 2))]
        train(train_once, Path(folder) / hook)
        failing.clear()
    print(sorted({hook for count in counts.values() for hook in count}))
