"""Planted: the seed is the day."""

import datetime
import random

from trainer import Training


class Faulty(Training):
    def seed(self) -> None:
        random.seed(datetime.datetime.now().toordinal())


Faulty()()
