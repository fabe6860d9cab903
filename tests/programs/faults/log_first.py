"""Sound; it writes a log from its first step on, and a checkpoint after each fifth. With --strict, it needs one to go on."""

import sys

from trainer import Training

STRICT = "--strict" in sys.argv
sys.argv = [word for word in sys.argv if word != "--strict"]


class Logging(Training):
    def is_kept(self, step):
        with open(self.options.out / "log", "a") as log:
            log.write(f"{step}\n")
        return step % 5 == 0

    def seed(self):
        if STRICT and self.options.resume:
            self.checkpoint.read_text()
        super().seed()


Logging()()
