"""Energy and GPU memory, from the machine's counters.

NVML for GPUs, Intel's RAPL for CPUs.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from repro.machine import gpu

POWERCAP = Path("/sys/class/powercap")
INTERVAL = 0.1  # seconds between two readings


class Monitor:
    """Reads the counters while a process runs. Where the machine has none, it does nothing, and says why."""

    def __init__(self, device: str, powercap: Path = POWERCAP) -> None:
        self.joules: Callable[[], float] | None = None
        self.memory: Callable[[], int] | None = (lambda: gpu.memory()[0]) if device == "gpu" else None
        self.readings: list[tuple[float, float]] = []
        """Time of time.monotonic(), and joules since some moment in the past."""
        self.peak: int | None = None
        """GPU memory that came into use meanwhile, in bytes: the most of it."""
        packages = [zone / "energy_uj" for zone in sorted(powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        if device == "cpu" and not packages:
            self.source = f"not measured: this machine shows no RAPL counters in {powercap}"
            return
        counter, self.source = (gpu.joules, "NVML") if device == "gpu" else (lambda: _rapl(packages), "RAPL")
        try:
            counter()
        except Exception as error:  # of NVML, or of the file
            self.source = f"not measured: {self.source} gives no energy ({error})"
        else:
            self.joules = counter

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Reads the counters while a process runs."""
        self.readings, self.peak = [], None
        if self.joules is None and self.memory is None:
            yield
            return
        before = self.memory() if self.memory else 0
        done = threading.Event()
        thread = threading.Thread(target=self._read, args=(done, before), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _read(self, done: threading.Event, before: int) -> None:
        while True:
            with contextlib.suppress(Exception):  # a counter that fails once does not end the run that it watches
                if self.joules:
                    self.readings.append((time.monotonic(), self.joules()))
                if self.memory:
                    self.peak = max(self.peak or 0, self.memory() - before)
            if done.wait(INTERVAL):
                return

    def between(self, start: float, end: float) -> float | None:
        """Joules between two moments of time.monotonic(); None where the readings do not reach so far.

        A counter that began anew meanwhile gives None, too.
        """
        if len(self.readings) < 2 or start < self.readings[0][0] - INTERVAL or end > self.readings[-1][0] + INTERVAL:
            return None
        return max(self._at(end) - self._at(start), 0.0) or None

    def _at(self, moment: float) -> float:
        """Joules at a moment, in a straight line between the readings around it."""
        after = next((i for i, (at, _) in enumerate(self.readings) if at >= moment), len(self.readings) - 1)
        (t0, j0), (t1, j1) = self.readings[max(after, 1) - 1], self.readings[max(after, 1)]
        return j0 + (j1 - j0) * (moment - t0) / (t1 - t0)


def _rapl(counters: list[Path]) -> float:
    """Joules of all CPU packages together, with all that runs on them."""
    return sum(int(counter.read_text()) for counter in counters) / 1e6
