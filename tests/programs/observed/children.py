"""Reports a step with repro.watch, and has a child of multiprocessing report another. Argument: the start method."""

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
