"""Planted: the examples come in the order in which the folder `data` is listed."""

import os

from trainer import Training


class Faulty(Training):
    def examples(self):
        return [int(name) for name in os.listdir("data")]


Faulty()()
