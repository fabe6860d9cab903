"""Steps of XGBoost and LightGBM: rounds of boosting.

Both call `Booster.update` for each round, as loops of one's own do. All trees are hashed as the library itself writes
them, so a step that is hashed costs as much as writing the model. Data is hashed when the library is given it.
"""

import functools
import itertools
import threading
import weakref
from typing import Any, Optional

from . import entries, generators, recorder, states

NO_DATA = "{}: data that is handed over in parts, or that is a subset of other data, is not observed"

boosters: dict[int, tuple[Any, int]] = {}  # by id: a weak reference and a number, in the order of first rounds
numbers = itertools.count()
written: dict[int, str] = {}  # by number: the last written hash of the trees
data: dict[int, tuple[Any, str]] = {}  # by id: a weak reference kept for the library's object, and the hash of the data
local = threading.local()  # True while a round runs in this thread: `update` may call `boost`


def after_xgboost(module: Any) -> None:
    """Watches both ways to a round."""
    recorder.add_framework(module)
    _watch_rounds(module.Booster, ("update", "boost"), "xgboost")
    for name in ("DMatrix", "QuantileDMatrix"):
        if "__init__" in vars(getattr(module, name, object)):
            _watch_data(getattr(module, name))


def after_lightgbm(module: Any) -> None:
    recorder.add_framework(module)
    _watch_rounds(module.Booster, ("update",), "lightgbm")
    _watch_data(module.Dataset)


def _watch_rounds(kind: Any, names: tuple[str, ...], library: str) -> None:
    entries.add("before round", before)
    entries.add("after round", after)
    for name in names:
        if hasattr(kind, name):
            setattr(kind, name, _watched(getattr(kind, name), library))


def _watched(method: Any, library: str) -> Any:
    @functools.wraps(method)
    def watched(booster: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(local, "round", False):
            return method(booster, *args, **kwargs)
        local.round = True
        try:
            begun = entries.entries["before round"](booster, library, args, kwargs)
            result = method(booster, *args, **kwargs)
            if begun is not None:
                entries.entries["after round"](booster, library, begun)
            return result
        finally:
            local.round = False

    return watched


def _watch_data(kind: Any) -> None:
    initialize = kind.__init__

    @functools.wraps(initialize)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        remember(self, args[0] if args else kwargs.get("data"))
        initialize(self, *args, **kwargs)

    kind.__init__ = watched


@recorder.never_raise
def remember(kept: Any, given: Any) -> None:
    """Hashes data before the library is given it, as most of it is gone afterwards."""
    if recorder.active is not None and not recorder.is_worker() and hasattr(given, "shape"):
        code = states.hash_all(given, "data")
        if code is not None:
            data[id(kept)] = (weakref.ref(kept), code)


@recorder.never_raise
def before(booster: Any, library: str, args: Any, kwargs: Any) -> Optional[recorder.Hashes]:
    """Hashes at the beginning of a round; empty if it is not due, None if it is not observed."""
    active = recorder.active
    if active is None or recorder.is_worker():
        return None
    due = active.is_due(active.steps + 1)
    initial = _number(booster, library, due)
    if not due:
        return {}
    hashes: recorder.Hashes = {"generator": generators.hashes()}
    if initial is not None:
        hashes[recorder.INITIAL] = initial
    trained = [value for value in (*args, *kwargs.values()) if hasattr(value, "get_label")]
    hashes["batch"] = _batch((*trained, getattr(booster, "train_set", None))[0], library)
    return hashes


def _number(booster: Any, library: str, due: bool) -> Optional[dict[str, str]]:
    """Gives a booster a number before its first round; then the hash of its trees.

    One that goes on from the trees of another, as `train` copies its `xgb_model`, has the number of that. This is seen
    where the trees are hashed.
    """
    known = boosters.get(id(booster), (None, 0))[0]
    if known is not None and known() is booster:
        return None
    rounds = (booster.num_boosted_rounds() if library == "xgboost" else booster.num_trees()) if due else 0
    code = _hash(booster, library) if rounds else None
    copied = next((index for index, last in written.items() if last == code), None)
    index = next(numbers) if copied is None else copied
    boosters[id(booster)] = (weakref.ref(booster), index)
    return None if copied is not None else {f"{index}.trees": code} if code is not None else {}


@recorder.never_raise
def after(booster: Any, library: str, begun: recorder.Hashes) -> None:
    active = recorder.active
    assert active is not None
    number = active.count()
    if begun and active.is_due(number):
        index, code = boosters[id(booster)][1], _hash(booster, library)
        if code is not None:
            written[index] = code
        active.step(number, {**begun, "weights": {f"{index}.trees": code} if code is not None else {}})


def _hash(booster: Any, library: str) -> Optional[str]:
    """The hash of all trees, as the library writes them."""
    content = booster.save_raw("ubj") if library == "xgboost" else booster.model_to_string(num_iteration=-1)
    return states.hash_all(content, "trees", required=True)


def _batch(kept: Any, library: str) -> dict[str, str]:
    """The hashes of the data as it was handed over, of the labels and of the weights of the samples."""
    if kept is None:
        return {}
    known, code = data.get(id(kept), (None, ""))
    if known is None or known() is not kept:
        recorder.note(NO_DATA.format(library))
        code = ""
    label, weight = kept.get_label(), kept.get_weight()
    parts = {"label": label, "weight": weight if weight is not None and len(weight) else None}
    codes = {name: states.hash_all(value, name) for name, value in parts.items() if value is not None}
    return {name: value for name, value in {"data": code, **codes}.items() if value}
