"""An evaluation that draws from the generator of the training, as often as --evaluate-every says."""

import random
import sys

from trainer import Training


class Evaluated(Training):
    def __init__(self) -> None:
        results = [word for word in sys.argv if word.startswith("--evaluate-every=")]
        sys.argv = [word for word in sys.argv if word not in results]
        self.every = int(results[-1].partition("=")[2]) if results else 100
        super().__init__()
        (self.options.out / f"every-{self.every}").touch()

    def rate(self, step: int) -> float:
        if step % self.every == 0:
            random.random()
        return super().rate(step)


Evaluated()()
