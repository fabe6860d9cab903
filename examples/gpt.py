"""The training of gpt_pytorch.py, gpt_jax.py and gpt_tensorflow.py but the network: sizes, text, batches, rates.

A GPT on characters: blocks of causal attention with rotary positions and of two dense layers, each after a LayerNorm,
and the embedding as the last layer, too. The text is the license of this project.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import common
import numpy as np

from repro.errors import ReproError
from repro.portable import schedules

LAYERS, WIDTH, HEADS, CONTEXT = 4, 128, 4, 64
EPSILON = 1e-5
BATCH, STEPS = 16, 300
PEAK, WARMUP, LIMIT = 1e-3, 20, 1.0
"""The largest rate, the steps until it is reached, and the norm to which gradients are clipped."""
BETAS, DECAY = (0.9, 0.99), 0.1
SLOTS: tuple[str, ...] = ("first", "second")

SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
FILE = Path(__file__).parent.parent / "LICENSE"


def _text() -> bytes:
    text = FILE.read_bytes()
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise ReproError(f"text: {FILE} has another SHA-256 than {SHA256[:16]}...; restore it from the repository")
    return text


CHARACTERS, TOKENS = np.unique(np.frombuffer(_text(), np.uint8), return_inverse=True)
TOKENS = TOKENS.astype(np.int32)
TRAINED = len(TOKENS) * 9 // 10
"""So many characters are trained on; the others are held out."""

_BLOCK = {
    "norm1.scale": (WIDTH,),
    "norm1.bias": (WIDTH,),
    "qkv.kernel": (WIDTH, 3 * WIDTH),
    "qkv.bias": (3 * WIDTH,),
    "out.kernel": (WIDTH, WIDTH),
    "out.bias": (WIDTH,),
    "norm2.scale": (WIDTH,),
    "norm2.bias": (WIDTH,),
    "up.kernel": (WIDTH, 4 * WIDTH),
    "up.bias": (4 * WIDTH,),
    "down.kernel": (4 * WIDTH, WIDTH),
    "down.bias": (WIDTH,),
}
WEIGHTS: dict[str, tuple[int, ...]] = {
    "tokens.embedding": (len(CHARACTERS), WIDTH),
    **{f"block{layer}.{name}": shape for layer in range(LAYERS) for name, shape in _BLOCK.items()},
    "norm.scale": (WIDTH,),
    "norm.bias": (WIDTH,),
}
STATISTICS: dict[str, tuple[int, ...]] = {}


def batch(seed: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of the text and, one character later, what is to be foretold: int32 [BATCH, CONTEXT] both."""
    starts = common.words(seed, common.BATCHES, step, BATCH) % np.uint64(TRAINED - CONTEXT)
    return _windows(starts.astype(np.int64))


def rate(step: int) -> float:
    """The learning rate of a step, counted from 0."""
    return schedules.cosine(step, STEPS, PEAK, PEAK / 10, WARMUP)


def evaluated(evaluate: Callable[[np.ndarray, np.ndarray], float]) -> str:
    """The mean loss of the text that is held out."""
    starts = np.arange(TRAINED, len(TOKENS) - CONTEXT, CONTEXT)
    return f"held-out loss {evaluate(*_windows(starts)):.6f}"


def _windows(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    places = starts[:, None] + np.arange(CONTEXT)
    return TOKENS[places], TOKENS[places + 1]
