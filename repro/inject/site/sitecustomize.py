"""Start of the observer, of portable numerics and of remedies, by Python itself.

Python runs this file because PYTHONPATH names its folder: what is asked for, and the user's sitecustomize. Nothing that
goes wrong here may break the program. Old Pythons get here, too, so the syntax is old.
"""

import os
import sys

SITE = os.path.dirname(os.path.abspath(__file__))


def _is_elsewhere(folder):  # type: (str) -> bool
    return os.path.abspath(folder or os.curdir) != SITE


def _start(name):  # type: (str) -> None
    """Starts a module of the package above, under a private name: the program may have another `repro`, or none."""
    import importlib
    import types

    if "_repro" not in sys.modules:
        package = types.ModuleType("_repro")  # without what its __init__ imports
        package.__path__ = [os.path.dirname(os.path.dirname(SITE))]
        sys.modules["_repro"] = package
    importlib.import_module("_repro." + name).start()


def _start_asked(variable, name, missing):  # type: (str, str, str) -> bool
    """Starts a module where a variable asks for it; whether that went well."""
    if not os.environ.get(variable):
        return True
    try:
        if sys.version_info < (3, 9):
            raise RuntimeError("Python 3.9 or later is needed")
        _start(name)
    except Exception as error:
        sys.stderr.write("repro: this process is %s: %s\n" % (missing, error))  # noqa: UP031
        return False
    return True


def _run_next_sitecustomize():  # type: () -> None
    """Runs the one that would have run without this one. What it raises, `site` reports as it always does."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [folder for folder in sys.path if _is_elsewhere(folder)]  # as the program would have seen it
_start_asked("REPRO_CHANGES", "inject.changes", "not changed")
_start_asked("REPRO_CONTROLS", "plant.start", "WITHOUT THE FAULT that was to be planted")  # before the observer looks
_start_asked("REPRO_OBSERVE", "observe.hooks", "not observed")
_start_asked("REPRO_DELAYS", "inject.delays", "not slowed")
_start_asked("REPRO_LISTINGS", "inject.listings", "not given listings in reverse order")
_start_asked("REPRO_PORTABLE", "inject.portable", "NOT PORTABLE")
try:
    _run_next_sitecustomize()
finally:  # over what others have changed
    if not _start_asked("REPRO_REMEDIES", "inject.remedies", "WITHOUT ITS REMEDIES, and ends"):
        os._exit(1)
