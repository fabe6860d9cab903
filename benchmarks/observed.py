"""Options and stopwatch of the loops whose time with the observer is measured."""

import argparse
import json
import os
import time

WARM_UP = 5  # steps that are not measured


def options(*names: str) -> tuple[str, int, int]:
    """The training, its threads and its measured steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=names)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    return given.name, given.threads, given.steps


class Loop:
    """The stopwatch of a loop: it prints the seconds of its steps after the warm-up, and the seconds of all threads."""

    def __init__(self, steps: int):
        self.last, self.step = WARM_UP + steps, 0
        self.wall = self.cpu = 0.0

    def is_over(self) -> bool:
        """Counts a step; True after the last one."""
        self.step += 1
        if self.step == WARM_UP:
            self.wall, self.cpu = time.perf_counter(), time.process_time()
        if self.step < self.last:
            return False
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        print(json.dumps({"seconds": wall, "cpu": cpu, "steps": self.last - WARM_UP, "pid": os.getpid()}))
        return True
