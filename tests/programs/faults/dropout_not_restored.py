"""Planted: dropout draws from a generator that a resumed run seeds anew; batches come from one that is restored."""

import random

from trainer import Training


class Faulty(Training):
    def seed(self):
        super().seed()
        self.batches = random.Random(self.options.seed)

    def batch(self, examples):
        return self.batches.sample(examples, 4)

    def gradient(self, weights, batch):
        return [value * (random.random() < 0.5) for value in super().gradient(weights, batch)]

    def kept(self, step, weights, momentum):
        return super().kept(step, weights, momentum) | {"random": self.batches.getstate()}

    def restore(self, kept):
        version, state, gauss = kept["random"]
        self.batches.setstate((version, tuple(state), gauss))
        return kept["step"], kept["weights"], kept["momentum"]


Faulty()()
