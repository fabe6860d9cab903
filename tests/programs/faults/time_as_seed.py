"""Planted: the time is the seed."""

import random
import time

from trainer import Training


class Faulty(Training):
    def seed(self):
        random.seed(time.time_ns())


Faulty()()
