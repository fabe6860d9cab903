"""Numbers that integers do not hold, converted to integers of all types."""

import math
from collections.abc import Callable, Iterator

import numpy as np

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ENDS = np.array([sign * 2.0**power for power in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (-1, 1)])
NUMBERS = [*ENDS, *np.nextafter(ENDS, 0), *np.nextafter(ENDS.astype(np.float32), np.float32(0))]
NUMBERS += [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    0.9,
    -0.9,
    2.5,
    -1.5,
    300.7,
    -129.3,
    70000.6,
    -40000.2,
    1e19,
    -1e19,
    3e38,
    -1e38,
    1e300,
]
COPIES = 1001
"""The number of copies: the result of a kernel may depend on a number's place."""


def expected(number: float, name: str) -> int:
    """The whole part; what is beyond the ends of the type is its end, and NaN is 0."""
    ends = np.iinfo(name)
    return 0 if math.isnan(number) else int(min(max(number, int(ends.min)), int(ends.max)))


def wrong(floats: dict[str, np.ndarray], convert: Callable[[str, str], np.ndarray]) -> Iterator[str]:
    """Conversions of arrays of COPIES of some numbers, by the names of their types, with another result."""
    for source, numbers in floats.items():
        for target in INTEGERS:
            right = np.array([expected(number, target) for number in numbers.tolist()], target)
            result = convert(source, target)
            if result.dtype != right.dtype or not np.array_equal(result.reshape(COPIES, -1), [right] * COPIES):
                yield f"{source} to {target}"
