"""Sound; it writes its one checkpoint after more than two thirds of its steps."""

from trainer import Training


class Late(Training):
    def is_kept(self, step):
        return step == 10


Late()()
