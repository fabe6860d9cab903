"""Roundings in a training step under XLA.

    python compiled_steps.py FRAMEWORK

Prints how many are there as it is written, and as it is compiled.
"""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.trainers.loop import environment, randomness
from repro.trainers.loop.config import Config, Params
from repro.trainers.loop.data import Dataset

batches, keep = np.zeros((2, 32), np.int32), np.zeros((2, 32, 70), np.uint8)


def jax_texts(trainer) -> Iterator[str]:
    lowered = type(trainer)._run.lower(
        trainer,
        SINGLE_PROCESS,
        trainer.weights,
        trainer.slots,
        trainer.train_images,
        trainer.train_labels,
        2,
        batches,
        keep,
    )
    yield lowered.as_text("hlo")
    yield lowered.compile().as_text()


def tensorflow_texts(trainer) -> Iterator[str]:
    step = trainer._compiled_step.experimental_get_compiler_ir(
        SINGLE_PROCESS,
        trainer.train_images[:32],
        trainer.train_labels[:32],
        importlib.import_module("tensorflow").constant(keep[0]),
    )
    yield step(stage="hlo")
    yield step(stage="optimized_hlo")


TEXTS = {"jax": jax_texts, "tensorflow": tensorflow_texts}
ROUNDING = {
    "jax": r" reduce-precision\(.*exponent_bits=8, mantissa_bits=23",
    "tensorflow": r"s64\[[0-9,]*\]\S* and\(",
}


def main(framework: str) -> None:
    params = Params(numerics="portable", device="cpu", threads=1)
    environment.apply(framework, Config(params=params))
    images, labels = np.zeros((64, 28, 28), np.uint8), np.zeros(64, np.int32)
    dataset = Dataset("mnist", images, labels, images, labels, Path(), {})
    trainer = importlib.import_module(f"mnist_{framework}").Trainer(params, dataset)
    trainer.load_state(randomness.initial_state(0, "lenet", "sgd"))
    for text in TEXTS[framework](trainer):
        print(len(re.findall(ROUNDING[framework], text)))


if __name__ == "__main__":
    main(sys.argv[1])
