"""Batches that tf.data hands out to a loop of one's own.

They are kept, not copied: TensorFlow's tensors never change. A step's line has the last of them, as an evaluation before it
may have gone through many.
"""

import collections
import functools
from typing import Any

from . import entries, hashing, recorder

KEPT = 4  # batches of a step, at most

batches: collections.deque[Any] = collections.deque(maxlen=KEPT)


def after_tensorflow_python_data_ops_iterator_ops(module: Any) -> None:
    """Watches the iterators of tf.data, as they run and not as they are traced."""
    entries.add("tf.data", _add)
    kind = module.OwnedIterator
    following = kind.__next__

    @functools.wraps(following)
    def watched(self: Any) -> Any:
        batch = following(self)
        entries.entries["tf.data"](batch)
        return batch

    kind.__next__ = watched


@recorder.never_raise
def _add(batch: Any) -> None:
    batches.append(batch)


def taken() -> list[tuple[str, str, Any]]:
    """The arrays of the batches since the last step, by their paths: `0.image`. They are given once."""
    arrays = [
        ("batch", path, leaf)
        for place, batch in enumerate(batches)
        for path, leaf in hashing.leaves(batch, str(place))
        if hasattr(leaf, "numpy")
    ]
    batches.clear()
    return arrays
