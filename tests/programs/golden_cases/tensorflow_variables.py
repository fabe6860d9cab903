"""Operations of golden/operations.txt that TensorFlow alone has: random numbers, changes of variables, optimizers.

A variable is made for each call, so that code and graphs start from the same one.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import tensorflow as tf

from programs.golden_cases.cases import Case, array, filler, index

CASES: dict[str, Case] = {}
case = filler(CASES)
raw = tf.raw_ops

PLANE, STATE = array(12, 20), array(12, 20, kind="positive")
_numbers = count()


def variable(x: Any) -> Any:
    """The handle of a variable with this value."""
    name = f"golden{next(_numbers)}"
    handle = raw.VarHandleOp(dtype=x.dtype, shape=x.shape, shared_name=name, container="", name=name)
    raw.AssignVariableOp(resource=handle, value=x)
    return handle


def value(handle: Any, like: Any) -> Any:
    return raw.ReadVariableOp(resource=handle, dtype=like.dtype)


# --- random numbers ---------------------------------------------------------------------------------------------------

KEY = {"key": tf.constant([7], tf.uint64), "counter": tf.constant([3, 5], tf.uint64), "alg": 1}
SHAPE, SEED = (12, 21), (7, 9)


def drawn(name: str, **options: Any) -> Callable[[Any], Any]:
    """Numbers of an operation without a state that the program sees."""
    return lambda x: getattr(raw, name)(shape=SHAPE, dtype=x.dtype, **options)


def from_generator(name: str) -> Callable[[Any], Any]:
    """Numbers of two calls with a generator's state, and the state."""

    def function(x: Any) -> Any:
        state = tf.constant([3, 5, 7], tf.int64)
        handle = variable(state)
        calls = [
            getattr(raw, name)(resource=handle, algorithm=tf.constant(1, tf.int64), shape=SHAPE, dtype=x.dtype)
            for _ in range(2)
        ]
        return [*calls, value(handle, state)]

    return function


def candidates(name: str) -> Callable[[Any], Any]:
    """Classes for a sampled softmax, with and without repetitions."""

    def function(i: Any) -> Any:
        given = {"true_classes": i[:, None], "num_true": 1, "num_sampled": 9, "range_max": 40, "seed": 7, "seed2": 9}
        return [each for unique in (False, True) for each in getattr(raw, name)(unique=unique, **given)]

    return function


for _kind, _name in {"normal": "Normal", "truncated": "TruncatedNormal"}.items():
    _stateful = "RandomStandardNormal" if _kind == "normal" else "TruncatedNormal"
    _generator = "StatefulStandardNormalV2" if _kind == "normal" else "StatefulTruncatedNormal"
    _key = f"Stateless{'Random' if _kind == 'normal' else ''}{_name}"
    case(f"random-{_kind}-key", drawn(f"{_key}V2", **KEY), array(1), gradient=False)
    case(f"random-{_kind}-seed", drawn(_key, seed=SEED), array(1), gradient=False)
    case(f"random-{_kind}-operation", drawn(_stateful, seed=7, seed2=9), array(1), gradient=False)
    case(f"random-{_kind}-generator", from_generator(_generator), array(1), gradient=False)
case(
    "random-gamma-stateless",
    lambda a: tf.random.stateless_gamma((7, 12, 5), SEED, a, dtype=a.dtype),
    array(12, 5, kind="positive"),
    gradient=False,
)
_RATES = array(12, 5, kind="positive")
case("random-gamma-operation", lambda a: raw.RandomGamma(shape=[7], alpha=a, seed=7, seed2=9), _RATES, gradient=False)
case(
    "random-poisson-operation",
    lambda a: raw.RandomPoissonV2(shape=[7], rate=a * 9, seed=7, seed2=9, dtype=a.dtype),
    _RATES,
    gradient=False,
)
case(
    "random-poisson-seed",
    lambda a: raw.StatelessRandomPoisson(shape=[7, 12, 5], seed=SEED, lam=a * 9, dtype=a.dtype),
    _RATES,
    gradient=False,
)
case(
    "random-classes",
    lambda x: raw.Multinomial(logits=x, num_samples=9, seed=7, seed2=9),
    array(4, 20),
    gradient=False,
)
case(
    "random-classes-seed",
    lambda x: raw.StatelessMultinomial(logits=x, num_samples=9, seed=SEED),
    array(4, 20),
    gradient=False,
)
case("candidates-uniform", candidates("UniformCandidateSampler"), index(40, 12), gradient=False)
case("candidates-log-uniform", candidates("LogUniformCandidateSampler"), index(40, 12), gradient=False)

# --- changes of variables ---------------------------------------------------------------------------------------------


def scattered(name: str) -> Callable[..., Any]:
    """A variable's value after rows were added, taken away or written."""

    def function(x: Any, i: Any, y: Any) -> Any:
        handle = variable(x)
        places = i[:, None] if "Nd" in name else i
        rest = {"ref" if "Nd" in name else "resource": handle}
        getattr(raw, name)(indices=places, updates=y, **rest)
        return value(handle, x)

    return function


for _nd in ("", "Nd"):
    for _way in ("Add", "Sub", "Update"):
        case(
            f"variable-{_way.lower()}{_nd and '-nd'}",
            scattered(f"ResourceScatter{_nd}{_way}"),
            array(11, 3),
            index(11, 50),
            array(50, 3),
            gradient=False,
        )

# --- optimizers -------------------------------------------------------------------------------------------------------


def stepped(name: str, *slots: str, **options: Any) -> Callable[..., Any]:
    """The weight and its slots after a fused step. Options that are numbers are tensors of the weight's type."""

    def function(weight: Any, gradient: Any, *states: Any) -> Any:
        arrays = (weight, *states)
        handles = [variable(each) for each in arrays]
        given = {key: tf.constant(x, weight.dtype) if isinstance(x, float) else x for key, x in options.items()}
        places = dict(zip(("var", *slots), handles, strict=True))
        last = {"delta" if name == "GradientDescent" else "grad": gradient}
        getattr(raw, f"ResourceApply{name}")(**places, **given, **last)
        return [value(handle, each) for handle, each in zip(handles, arrays, strict=True)]

    return function


ADAM = {"beta1_power": 0.81, "beta2_power": 0.98, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-7}
ADADELTA = {"lr": 0.1, "rho": 0.9, "epsilon": 1e-7}
STEPS: dict[str, tuple[Callable[..., Any], int]] = {
    "descent": (stepped("GradientDescent", alpha=0.1), 0),
    "adam": (stepped("Adam", "m", "v", **ADAM), 2),
    "adam-nesterov": (stepped("Adam", "m", "v", **ADAM, use_nesterov=True), 2),
    "adagrad": (stepped("Adagrad", "accum", lr=0.1), 1),
    "adagrad-epsilon": (stepped("AdagradV2", "accum", lr=0.1, epsilon=1e-7), 1),
    "rmsprop": (stepped("RMSProp", "ms", "mom", lr=0.1, rho=0.9, momentum=0.5, epsilon=1e-7), 2),
    "adadelta": (stepped("Adadelta", "accum", "accum_update", **ADADELTA), 2),
}
for _nesterov in (False, True):
    for _name in ("Momentum", "KerasMomentum"):
        _step = stepped(_name, "accum", lr=0.1, momentum=0.9, use_nesterov=_nesterov)
        STEPS[f"{_name.lower()}{'-nesterov' if _nesterov else ''}"] = _step, 1
for _name, (_step, _slots) in STEPS.items():
    case(f"variable-{_name}", _step, PLANE, PLANE, *(STATE,) * _slots, gradient=False)
