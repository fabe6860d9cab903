"""Changes of an evaluation's batches, with which `verify` tests why other batches have other scores.

The last, smaller batch is kept where a loader would leave it out; a batch normalization that would take the statistics of each batch
takes the running ones.
"""

import functools
import inspect
from types import ModuleType
from typing import Any

from . import imports, marks

KEPT, RUNNING = "last batch", "statistics"  # marks


def keep_last(_: str) -> None:
    """Keeps the last batch in PyTorch's loaders and in tf.data."""
    imports.finder.when_imported("torch.utils.data", _keep_pytorch)
    imports.finder.when_imported("tensorflow", _keep_tensorflow)
    imports.start()


def _keep_pytorch(data: ModuleType) -> None:
    """By the samplers of batches, and by what fetches from an iterable data set."""
    for kind in (data.BatchSampler, data._utils.fetch._BaseDatasetFetcher):
        kind.__init__ = _without_drop(kind.__init__)


def _without_drop(make: Any) -> Any:
    @functools.wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if self.drop_last:
            self.drop_last = False
            marks.leave(KEPT)

    return made


def _keep_tensorflow(tensorflow: ModuleType) -> None:
    kind = tensorflow.data.Dataset
    batch = kind.batch

    @functools.wraps(batch)
    def kept(self: Any, batch_size: Any, drop_remainder: bool = False, *args: Any, **kwargs: Any) -> Any:
        if drop_remainder:
            marks.leave(KEPT)
        return batch(self, batch_size, False, *args, **kwargs)

    kind.batch = kept


def use_running(_: str) -> None:
    """Makes batch normalizations of PyTorch and Keras use their running statistics."""
    imports.finder.when_imported("torch.nn.functional", _run_pytorch)
    imports.finder.when_imported("keras", _run_keras)
    imports.start()


def _run_pytorch(functional: ModuleType) -> None:
    normalize = functional.batch_norm
    signature = inspect.signature(normalize)

    @functools.wraps(normalize)
    def batch_norm(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("training") and bound.arguments["running_mean"] is not None:
            marks.leave(RUNNING)
            bound.arguments["training"] = False
        return normalize(*bound.args, **bound.kwargs)

    vars(functional)["batch_norm"] = batch_norm


def _run_keras(keras: ModuleType) -> None:
    kind = keras.layers.BatchNormalization
    normalize = kind.call

    @functools.wraps(normalize)
    def call(self: Any, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        if training:
            marks.leave(RUNNING)
        return normalize(self, inputs, training=False, **kwargs)

    kind.call = call
