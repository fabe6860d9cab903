"""Start of the observer, by Python itself.

Python runs this file because PYTHONPATH names its folder: the observer, then the user's sitecustomize. Nothing that
goes wrong here may break the program that is observed. Old Pythons get here, too, so the syntax is old.
"""

import os
import sys

SITE = os.path.dirname(os.path.abspath(__file__))


def _is_elsewhere(folder):  # type: (str) -> bool
    return os.path.abspath(folder or os.curdir) != SITE


def _start_observer():  # type: () -> None
    """Loads the folder above as a package of a private name: the program may have another `repro`, or none."""
    import importlib.util

    above = os.path.dirname(SITE)
    file = os.path.join(above, "__init__.py")
    spec = importlib.util.spec_from_file_location("_repro_observe", file, submodule_search_locations=[above])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["_repro_observe"] = package
    spec.loader.exec_module(package)
    importlib.import_module("_repro_observe.hooks").start()


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


sys.path[:] = [folder for folder in sys.path if _is_elsewhere(folder)]  # as the program would have found it
if os.environ.get("REPRO_OBSERVE"):
    try:
        if sys.version_info < (3, 9):
            raise RuntimeError("Python 3.9 or later is needed")
        _start_observer()
    except Exception as error:
        sys.stderr.write("repro: this process is not observed: %s\n" % (error,))  # noqa: UP031
_run_next_sitecustomize()
