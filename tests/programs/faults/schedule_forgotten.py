"""Planted: the learning rate falls with the steps of this process, not of the whole training."""

from trainer import Training


class Faulty(Training):
    begun = 0

    def restore(self, kept):
        self.begun = kept["step"]
        return super().restore(kept)

    def rate(self, step):
        return 0.05 / (step - self.begun)


Faulty()()
