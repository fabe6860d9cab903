"""Python runs this file at its start, because PYTHONPATH names its folder: the observer, then the user's sitecustomize.

Nothing that goes wrong here may break the program that is observed. Old Pythons get here, too, so the syntax is old.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _elsewhere(folder):
    return os.path.abspath(folder or os.curdir) != HERE


def _start():
    """Loads the folder above as a package of a private name: the program may have another `repro`, or none."""
    import importlib.util

    above = os.path.dirname(HERE)
    place = os.path.join(above, "__init__.py")
    spec = importlib.util.spec_from_file_location("_repro_observe", place, submodule_search_locations=[above])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["_repro_observe"] = package
    spec.loader.exec_module(package)
    importlib.import_module("_repro_observe.hooks").start()


def _hand_on():
    """Runs the sitecustomize that would have run without this one. What it raises, `site` reports as it always does."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [folder for folder in sys.path if _elsewhere(folder)]  # as the program would have found it
if os.environ.get("REPRO_OBSERVE"):
    try:
        if sys.version_info < (3, 9):
            raise RuntimeError("Python 3.9 or later is needed")
        _start()
    except Exception as error:
        sys.stderr.write("repro: this process is not observed: %s\n" % (error,))  # noqa: UP031
_hand_on()
