"""Planted: a checkpoint holds rounded weights."""

from trainer import Training


class Faulty(Training):
    def kept(self, step, weights, momentum):
        return super().kept(step, [round(weight, 3) for weight in weights], momentum)


Faulty()()
