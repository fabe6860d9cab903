"""Hashes of a script's last weights.

They are those that the observer should have written, by other means.
"""

import hashlib
import json
from collections.abc import Mapping

import numpy as np


def sha(array: np.ndarray) -> str:
    array = np.asarray(array)
    shape = ",".join(map(str, array.shape))
    return hashlib.sha256(f"{array.dtype.name} {shape}\n".encode() + array.tobytes()).hexdigest()


def report(scenario: str, count: int, weights: Mapping[str, np.ndarray]) -> None:
    print(json.dumps([scenario, count, {name: sha(array) for name, array in weights.items()}]))
