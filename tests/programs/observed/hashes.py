"""What a script prints of its last weights: the hashes that the observer should have written, by other means."""

import hashlib
import json
from collections.abc import Mapping

import numpy as np


def sha(array: np.ndarray) -> str:
    array = np.asarray(array)
    shape = ",".join(map(str, array.shape))
    return hashlib.sha256(f"{array.dtype.name} {shape}\n".encode() + array.tobytes()).hexdigest()


def tell(scenario: str, count: int, weights: Mapping[str, np.ndarray]) -> None:
    print(json.dumps([scenario, count, {name: sha(array) for name, array in weights.items()}]))
