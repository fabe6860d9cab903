"""Scores of an evaluation: one SHA-256 of what is computed for each of 16 texts and 16 pictures, in batches of any size.

    repro portable -- python evidence/batches/scores.py pytorch --batch=5
    repro portable -- python evidence/batches/scores.py jax --batch=5

Two models with random weights: a small GPT, which gives the log-likelihood of each word, and a small residual network,
which gives logits. Texts are padded to the longest of their batch. docs/reference/batches.md has the results.
"""

import argparse
import hashlib
from importlib import import_module

import numpy as np

WORDS, SAMPLES, LONGEST = 60, 16, 20


def samples() -> tuple[list[np.ndarray], np.ndarray]:
    """Texts, int64 of 8 to 20 words, and pictures, float32 [16, 3, 24, 24] of multiples of 1/256."""
    numbers = np.random.default_rng(0)
    texts = [numbers.integers(1, WORDS, numbers.integers(8, LONGEST + 1)) for _ in range(SAMPLES)]
    return texts, numbers.integers(0, 256, (SAMPLES, 3, 24, 24)).astype(np.float32) / 256


def padded(texts: list[np.ndarray]) -> np.ndarray:
    """Texts as int64 [B, T], zeros behind."""
    longest = max(map(len, texts))
    return np.stack([np.pad(each, (0, longest - len(each))) for each in texts])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=["pytorch", "jax"])
    parser.add_argument("--batch", type=int, default=SAMPLES)
    options = parser.parse_args()
    texts, pictures = samples()
    likelihoods, logits = import_module(f"scores_{options.framework}").models(WORDS, LONGEST, pictures)
    batches = [slice(start, start + options.batch) for start in range(0, SAMPLES, options.batch)]
    results = hashlib.sha256()
    for batch in batches:
        for text, row in zip(texts[batch], likelihoods(padded(texts[batch])), strict=True):
            results.update(row[: len(text) - 1].tobytes())
    for batch in batches:
        results.update(logits(pictures[batch]).tobytes())
    print(results.hexdigest())


if __name__ == "__main__":
    main()
