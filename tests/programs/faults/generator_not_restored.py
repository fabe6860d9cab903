"""Planted: a resumed run seeds its random generator anew instead of restoring it."""

from trainer import Training


class Faulty(Training):
    def restore(self, kept):
        return kept["step"], kept["weights"], kept["momentum"]


Faulty()()
