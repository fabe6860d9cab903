"""Steps of a process and of its child.

The argument is the start method of multiprocessing.
"""

import multiprocessing
import sys

import repro


def child() -> None:
    repro.watch(1, {"w": 2})


if __name__ == "__main__":
    repro.watch(1, {"w": 1})
    process = multiprocessing.get_context(sys.argv[1]).Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
