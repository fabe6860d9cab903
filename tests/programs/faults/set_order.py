"""Planted: the examples come in the order of a set of texts."""

from trainer import EXAMPLES, Training


class Faulty(Training):
    def examples(self):
        return [int(text) for text in {str(number) for number in range(EXAMPLES)}]


Faulty()()
