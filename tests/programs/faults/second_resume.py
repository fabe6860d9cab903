"""Planted: a resumed run saves the generator as it found it, so that the second resume draws old numbers."""

import random

from trainer import Training


class Faulty(Training):
    def restore(self, kept):
        result = super().restore(kept)
        self.found = random.getstate()
        return result

    def kept(self, step, weights, momentum):
        state = self.found if self.options.resume else random.getstate()
        return {**super().kept(step, weights, momentum), "random": state}


Faulty()()
