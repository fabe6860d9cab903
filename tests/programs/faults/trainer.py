"""A training in plain Python that writes down its own steps, as the observer would; scripts plant one fault each in it.

A network of four weights learns a line by gradient descent with momentum, from batches that random numbers choose.
With REPRO_OBSERVE set it writes the lines of a record.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import TextIO

SIZE, EXAMPLES, BATCH = 4, 64, 4


def sha(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


class Observer:
    """Writes DIR/steps/PID.jsonl."""

    def __init__(self) -> None:
        self.folder = os.environ.get("REPRO_OBSERVE")
        self.file: TextIO | None = None
        self.every = int(os.environ.get("REPRO_OBSERVE_EVERY", "1"))

    def line(self, **content: object) -> None:
        if self.folder is None:
            return
        if self.file is None:
            self.file = open(Path(self.folder) / "steps" / f"{os.getpid()}.jsonl", "a")  # noqa: SIM115
            self.line(
                kind="process",
                pid=os.getpid(),
                parent=os.getppid(),
                rank=None,
                argv=sys.argv,
                python="3.11.0",
                frameworks={"plain": "1.0"},
                threads=1,
            )
        assert self.file
        self.file.write(json.dumps(content, sort_keys=True) + "\n")
        self.file.flush()

    def step(self, number: int, **hashes: dict[str, str]) -> None:
        if number % self.every == 0 or number == 1:
            self.line(kind="step", step=number, hashes={k.replace("_", " "): v for k, v in hashes.items()})


class Training:
    """Sound as it stands: each part that a script overrides is a fault that it plants."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--steps", type=int, default=12)
        parser.add_argument("--out", type=Path, default=Path("out"))
        parser.add_argument("--resume", action="store_true")
        parser.add_argument("--pause", type=float, default=0.01)
        self.options = parser.parse_args()
        self.options.out.mkdir(parents=True, exist_ok=True)
        self.checkpoint = self.options.out / "checkpoint.json"

    def seed(self) -> None:
        random.seed(self.options.seed)

    def examples(self) -> list[int]:
        return list(range(EXAMPLES))

    def gradient(self, weights: list[float], batch: list[int]) -> list[float]:
        results = [0.0] * SIZE
        for example in batch:
            x = [((example * (k + 3)) % 7) / 7 for k in range(SIZE)]
            error = sum(w * v for w, v in zip(weights, x, strict=True)) - example / EXAMPLES
            results = [g + error * v for g, v in zip(results, x, strict=True)]
        return results

    def batch(self, examples: list[int]) -> list[int]:
        return random.sample(examples, BATCH)

    def rate(self, step: int) -> float:
        return 0.05

    def is_kept(self, step: int) -> bool:
        return step % 2 == 0

    def kept(self, step: int, weights: list[float], momentum: list[float]) -> dict[str, object]:
        return {"step": step, "weights": weights, "momentum": momentum, "random": random.getstate()}

    def restore(self, kept: dict) -> tuple[int, list[float], list[float]]:
        version, state, gauss = kept["random"]
        random.setstate((version, tuple(state), gauss))
        return kept["step"], kept["weights"], kept["momentum"]

    def __call__(self) -> None:
        self.seed()
        examples = self.examples()
        step, weights, momentum = 0, [random.random() for _ in range(SIZE)], [0.0] * SIZE
        if self.options.resume and self.checkpoint.exists():
            step, weights, momentum = self.restore(json.loads(self.checkpoint.read_text()))
        observer, first = Observer(), step
        observer.step(0, initial_weights={"w": sha(weights)}, generator={"python": sha(random.getstate())})
        for step in range(first + 1, self.options.steps + 1):
            batch, state = self.batch(examples), sha(random.getstate())
            gradient = self.gradient(weights, batch)
            momentum = [0.9 * m + g for m, g in zip(momentum, gradient, strict=True)]
            weights = [w - self.rate(step) * m for w, m in zip(weights, momentum, strict=True)]
            observer.step(
                step - first,
                batch={"0": sha(batch)},
                generator={"python": state},
                gradients={"w": sha(gradient)},
                optimizer={"w.momentum": sha(momentum)},
                weights={"w": sha(weights)},
            )
            if self.is_kept(step):
                beside = self.checkpoint.with_suffix(".new")
                beside.write_text(json.dumps(self.kept(step, weights, momentum)))
                beside.replace(self.checkpoint)
            time.sleep(self.options.pause)
        (self.options.out / "model.json").write_text(json.dumps(weights))
        observer.line(kind="end", seconds=0.002)
        print("trained", flush=True)


if __name__ == "__main__":
    Training()()
