"""Seeds and strict determinism for a user's script.

The trainers here draw nothing from these generators (see repro.trainers.loop.randomness); other scripts do.
"""

import operator
import os
import random
import sys
import warnings

from repro.errors import UsageError
from repro.frameworks import FRAMEWORKS

LARGEST = 2**32 - 1  # NumPy's global generator takes no larger seed


def set_seeds(seed: int, deterministic: bool = True) -> list[str]:
    """Seeds every global generator that is there, and switches strict determinism on or off. Returns what was seeded.

    Always `random` and `numpy` (its global generator, not those of `numpy.random.default_rng`), and those of `torch`,
    `tensorflow` and `keras` that are imported. It imports none itself: call it after your imports, and before you make
    layers or data. `jax` is never returned: it has no global generator, so give the seed to `jax.random.key` yourself.

    With `deterministic`, an operation of PyTorch or TensorFlow without a deterministic version is an error from here
    on, and cuDNN does not choose kernels by timing them. For PyTorch CUBLAS_WORKSPACE_CONFIG and for JAX XLA_FLAGS are
    set, unless the script has; they count if nothing has run on the GPU yet. Without, the switches of PyTorch and
    TensorFlow are off; the two variables stay as they are.

    PYTHONHASHSEED, which decides the order of a set of strings, counts only if it is set before Python starts. Where it
    was not, strict determinism warns.

    UsageError if the seed is no whole number between 0 and 2^32 - 1.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number <= LARGEST:
        raise UsageError(f"set_seeds: seed={seed!r}: must be a whole number between 0 and {LARGEST}, as NumPy's is")
    if deterministic and not _hash_seed_is_fixed():
        change = "set_seeds: PYTHONHASHSEED was not set when Python started, so the order of sets of strings changes"
        warnings.warn(f"{change}; start it with PYTHONHASHSEED=0", stacklevel=2)
    import numpy  # only here: `import repro`, which each start of pytest may do, takes no time

    random.seed(number)
    numpy.random.seed(number)
    imported = [name for name in SEEDERS if sys.modules.get(name)]
    for name in imported:
        SEEDERS[name](number, deterministic)
    return ["random", "numpy", *(name for name in imported if name != "jax")]


def _torch(seed: int, deterministic: bool) -> None:
    torch = sys.modules["torch"]
    torch.manual_seed(seed)  # of every device
    if deterministic:
        for name, value in FRAMEWORKS["pytorch"].deterministic.items():
            os.environ.setdefault(name, value)
        torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = deterministic
    torch.use_deterministic_algorithms(deterministic)


def _tensorflow(seed: int, deterministic: bool) -> None:
    tensorflow = sys.modules["tensorflow"]
    tensorflow.random.set_seed(seed)
    switches = sys.modules["tensorflow.python.framework.config"]  # the public module can only switch on
    (switches.enable_op_determinism if deterministic else switches.disable_op_determinism)()


def _keras(seed: int, _deterministic: bool) -> None:
    sys.modules["keras"].utils.set_random_seed(seed)


def _jax(_seed: int, deterministic: bool) -> None:
    own, strict = os.environ.get("XLA_FLAGS", ""), FRAMEWORKS["jax"].deterministic["XLA_FLAGS"]
    if deterministic and strict not in own:
        os.environ["XLA_FLAGS"] = f"{strict} {own}".strip()  # the script's own come last, and win


SEEDERS = {"torch": _torch, "tensorflow": _tensorflow, "keras": _keras, "jax": _jax}


def _hash_seed_is_fixed() -> bool:
    """True if Python started with a fixed PYTHONHASHSEED; a script that sets it to 0 itself is too late."""
    given = os.environ.get("PYTHONHASHSEED", "")
    ignored = sys.flags.ignore_environment
    return not sys.flags.hash_randomization or (given not in ("", "random", "0") and not ignored)
