"""Planted: two threads load the halves of the examples, and the one that is done first comes first."""

import threading

from trainer import Training


class Faulty(Training):
    def examples(self):
        results: list[int] = []
        examples = super().examples()
        halves = [examples[:32], examples[32:]]
        threads = [threading.Thread(target=results.extend, args=(half,)) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


Faulty()()
