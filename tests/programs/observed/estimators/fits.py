"""Fits of each kind, with a stand-in for scikit-learn."""

import numpy
from sklearn.models import Broken, Ensemble, Mean

X, y = numpy.arange(12.0).reshape(4, 3), numpy.arange(4)
ensemble = Ensemble(Mean(rate=0.25)).fit(X, y)
mean = Mean(random_state=numpy.random.RandomState(0))
for part in (X[:2], X[2:]):
    mean.partial_fit(part, y=y[:2])
broken = Broken()
try:
    broken.fit(X)
except ValueError as error:
    print(error)
broken.fit(X)
print(ensemble.estimators_[1].mean_, mean.mean_.tobytes().hex(), next(broken.lines_))
