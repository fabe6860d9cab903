"""Import hooks that install each framework's watcher.

A watcher is installed once all of the framework's module has loaded.
"""

import functools
import importlib
import os
from types import ModuleType

from ..inject import imports
from . import checkpoints, files, generators, hashing, metrics, module_calls, recorder, windows
from . import watched as watched  # repro.watch finds it in sys.modules

# The module that is waited for, and the files of this folder that then hook into it, in this order.
WATCHERS = {
    "torch": ("pytorch", "operations", "pytorch_calls"),
    "torch._dynamo": ("pytorch", "pytorch_calls"),
    "keras": ("keras", "keras_calls"),
    "tensorflow.python.data.ops.iterator_ops": ("tf_data",),
    "jax": ("jax",),
    "optax": ("jax",),
    "equinox": ("jax",),
    "flax.nnx": ("jax",),
    "flax.training.train_state": ("jax",),
    "sklearn.base": ("estimators",),
    "xgboost": ("boosting",),
    "lightgbm": ("boosting",),
    "rich.style": (),  # draws numbers while it is imported, as scikit-learn 1.9 imports it
    "numpy.random": ("generators",),
    "tensorflow.python.ops.stateful_random_ops": ("generators",),
}


def install_hooks(name: str, module: ModuleType) -> None:
    """Calls the watchers' function of the module's name: after_torch, and after_torch__dynamo for torch._dynamo."""
    try:
        for file in WATCHERS[name]:
            watcher = importlib.import_module("." + file, __package__)
            getattr(watcher, "after_" + name.replace(".", "_"))(module)
    except Exception as error:
        recorder.unseen(f"{name} is not observed: {type(error).__name__}: {error}")


def install_metrics(name: str, module: ModuleType) -> None:
    """Has the metrics that a module logs written down; without that, no step is less observed."""
    try:
        metrics.MODULES[name](module)
    except Exception as error:
        recorder.note(f"metrics of {name} are not observed: {type(error).__name__}: {error}")


def start() -> None:
    """Begins to observe this process, as the variables REPRO_OBSERVE, _EVERY, _KEEP, _CHECKPOINTS, _HOLD and _MODULES say."""
    folder, every = os.environ["REPRO_OBSERVE"], os.environ.get("REPRO_OBSERVE_EVERY", "")
    if os.environ.get("REPRO_OBSERVE_KEEP") == "1":
        hashing.content_folder = os.path.join(folder, "kept")
    recorder.start(folder, max(int(every), 1) if every.isdigit() else 1)
    files.start()
    checkpoints.start(os.environ.get("REPRO_OBSERVE_CHECKPOINTS", ""))
    windows.start(os.environ.get("REPRO_OBSERVE_HOLD", ""))
    module_calls.start(os.environ.get("REPRO_OBSERVE_MODULES", ""))
    generators.start()
    imports.finder.around = generators.execute_import
    for name in WATCHERS:
        imports.finder.when_imported(name, functools.partial(install_hooks, name))
    for name in metrics.MODULES:
        imports.finder.when_imported(name, functools.partial(install_metrics, name))
    imports.start()
