"""Fits of each kind, with a stand-in for scikit-learn."""

import numpy
from sklearn.models import Broken, Ensemble, Mean


def train(_: str = "") -> None:
    x, y = numpy.arange(12.0).reshape(4, 3), numpy.arange(4)
    ensemble = Ensemble(Mean(rate=0.25)).fit(x, y)
    mean = Mean(random_state=numpy.random.RandomState(0))
    for part in (x[:2], x[2:]):
        mean.partial_fit(part, y=y[:2])
    print(ensemble.estimators_[1].mean_, mean.mean_.tobytes().hex())


def fail() -> None:
    broken = Broken()
    try:
        broken.fit(numpy.zeros(3))
    except ValueError as error:
        print(error)
    broken.fit(numpy.zeros(3))
    print(next(broken.lines_))


SCENARIOS = {"fits": train}

if __name__ == "__main__":
    train()
    fail()
