"""Estimators as scikit-learn makes them: parameters as they were given, and what was fitted under other names."""

import inspect
import threading
import time

import numpy
import rich.style  # noqa: F401

from .base import _fit_context


class Estimator:
    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}


class Tree:
    """Without a `__dict__`, as what is written in C."""

    __slots__ = ("nodes",)

    def __init__(self, nodes):
        self.nodes = nodes

    def __reduce__(self):
        return Tree, (self.nodes,)


class Mean(Estimator):
    def __init__(self, rate=0.5, random_state=None):
        self.rate, self.random_state = rate, random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, x, y=None):
        self.mean_ = x.mean(axis=0)
        self.fit_time_ = time.perf_counter()
        nodes = numpy.zeros(2, {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 16})
        nodes.view(numpy.uint8)[1:8] = time.perf_counter_ns() % 251  # between the fields
        self.tree_ = Tree(nodes)
        self._names = {"a", "b"}
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, x, y=None):
        draw = self.random_state.uniform()
        self.mean_ = (1 - self.rate) * getattr(self, "mean_", 0.0) + self.rate * (x.mean(axis=0) + draw)
        return self


class Ensemble(Estimator):
    """Fits others, one of them in a thread."""

    def __init__(self, estimator):
        self.estimator = estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, x, y=None):
        self.estimators_ = [Mean(), Mean()]
        self.estimators_[0].fit(x)
        thread = threading.Thread(target=self.estimators_[1].fit, args=(x[::2],))
        thread.start()
        thread.join()
        return self


class Broken(Estimator):
    """Fails, and then holds what has no hash."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, x, y=None):
        if not hasattr(self, "lines_"):
            self.lines_ = (line for line in "ab")
            raise ValueError("again")
        return self
