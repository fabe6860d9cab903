"""The vectors that a CPU has: kernels are tested with each width, whatever the widest of this one is."""

from pathlib import Path

import pytest

WIDTHS = {512: "avx512f", 256: "avx", 128: ""}
"""Width in bits, and the flag of an x86 that has such registers; every processor has the smallest."""


def needs_width(bits: int) -> None:
    """Skips a test of vectors that this CPU does not have."""
    cpus = Path("/proc/cpuinfo")
    flags = cpus.read_text().split() if cpus.exists() else []
    if WIDTHS[bits] and WIDTHS[bits] not in flags:
        pytest.skip(f"this CPU has no vectors of {bits} bits ({WIDTHS[bits]})")
