"""Programs of the table of coverage, trained one after another in this process.

    python worker.py GROUP [NAME ...] [--portable] [--plain] [--threads=N] [--device=DEVICE]
    python worker.py GROUP --list

--plain is without kernels. Prints a line of JSON for each: its name, the fingerprint of what it made, losses, seconds; or the error that ended it.
"""

import argparse
import json
import os
import random
import sys
import time
import traceback
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from evidence.coverage.registry import framework_of, load
from repro.fingerprint import fingerprint


def seed(framework: ModuleType) -> None:
    """The generators of Python, NumPy and a framework, as at the start of each program."""
    random.seed(0)
    np.random.seed(0)
    framework.seed()


def trained(framework: ModuleType, function: Any) -> dict[str, Any]:
    """What came of one program."""
    seed(framework)
    start = time.perf_counter()
    made = function()
    losses = []
    if isinstance(made, framework.Training):
        state = made.run()
        losses = made.losses
    else:
        state = made
    result = fingerprint(framework.arrays(state))
    return {"fingerprint": result, "losses": losses, "seconds": round(time.perf_counter() - start, 2)}


def failure(error: BaseException) -> dict[str, Any]:
    """The error, and where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    refused = type(error).__name__ == "RefusedError"
    where = "" if refused else f" ({last.filename}:{last.lineno})"
    return {"refused" if refused else "error": f"{type(error).__name__}: {error}".split("\n")[0] + where}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--portable", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", help="where programs make their tensors")
    parser.add_argument("--raise", dest="raised", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    framework = framework_of(options.group)
    framework.prepare(options.threads, options.device)
    programs = load(options.group)
    if options.list:
        print("\n".join(programs))
        return
    if options.portable:
        framework.enable(kernels=not options.plain)
    for name in options.names or programs:
        start = time.perf_counter()
        try:
            result = trained(framework, programs[name])
        except Exception as error:
            if options.raised:
                raise
            result = failure(error) | {"seconds": round(time.perf_counter() - start, 2)}
        print(json.dumps({"name": name} | result), flush=True)
    sys.stdout.flush()
    os._exit(0)  # a program's threads are not waited for


if __name__ == "__main__":
    main()
