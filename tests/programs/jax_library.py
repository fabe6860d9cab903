"""Computes what library_cases.py has with JAX's library: python jax_library.py FILE [eager], an archive of NumPy's.

Its names are MODE/CASE/NAME; float64/CASE/NAME is what JAX itself computes, of float64. `lines` has what is refused.
With `eager` only the networks, eagerly, which takes minutes: JAX then compiles each of a thousand operations by itself.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402
from flax import linen as nn  # noqa: E402
from jax import Array, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from programs import library_cases as cases  # noqa: E402
from repro.errors import UsageError  # noqa: E402
from repro.portable.library.jax import functional, layers, optim  # noqa: E402

# --- functions --------------------------------------------------------------------------------------------------------


def attention(query, key, value, mask=None, is_causal=False, scale=None):
    scores = query @ jnp.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool)) if is_causal else mask
    return jnp.where(seen.any(-1)[:, None], jax.nn.softmax(jnp.where(seen, scores, -1e9)), 0.0) @ value


def conv2d(x, kernel, bias=0.0, stride=1, padding=0, dilation=1, groups=1):
    pads = padding if isinstance(padding, str) else [(each, each) for each in np.broadcast_to(padding, 2).tolist()]
    y = lax.conv_general_dilated(
        x,
        kernel,
        np.broadcast_to(stride, 2),
        pads,
        rhs_dilation=np.broadcast_to(dilation, 2),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return y + bias


def pooled(pool: Callable[..., Array]) -> Callable[..., Array]:
    def call(x, size, stride=None, padding=0):
        window = tuple(np.broadcast_to(size, 2).tolist())
        pads = padding if isinstance(padding, str) else [(padding, padding)] * 2
        return pool(x, window, window if stride is None else tuple(np.broadcast_to(stride, 2).tolist()), pads)

    return call


def normalized(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + epsilon)


def group_norm(x, groups, scale, bias):
    grouped = x.reshape(*x.shape[:3], groups, -1)
    return normalized(grouped, (1, 2, 4), 1e-5).reshape(x.shape) * scale + bias


def batch_norm(x, mean, variance, scale, bias=0.0, training=False, momentum=0.1):
    if not training:
        mean, variance = lax.stop_gradient((mean, variance))
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias, mean, variance
    of_batch, spread = (lax.stop_gradient(each) for each in (x.mean((0, 1, 2)), x.var((0, 1, 2), ddof=1)))
    moved = [old + momentum * (new - old) for old, new in ((mean, of_batch), (variance, spread))]
    return normalized(x, (0, 1, 2), 1e-5) * scale + bias, *moved


def rotary(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[-2])[:, None] * 10000.0 ** (-2 * jnp.arange(half) / x.shape[-1])
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), b * jnp.cos(angles) + a * jnp.sin(angles)], -1)


def cross_entropy(logits, labels, label_smoothing=0.0):
    target = jax.nn.one_hot(labels, logits.shape[-1]) * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    return -(target * jax.nn.log_softmax(logits)).sum(-1).mean()


def dropout(x, rate, seed, step):
    return jnp.where(functional.dropout(x.astype("float32"), rate, seed, step) == 0, 0.0, x / (1 - rate))


OWN: dict[str, Callable[..., Any]] = {
    "linear": lambda x, kernel, bias=0.0: x @ kernel + bias,
    "conv2d": conv2d,
    "max_pool2d": pooled(nn.max_pool),
    "avg_pool2d": pooled(nn.avg_pool),
    "global_avg_pool2d": lambda x: x.mean((1, 2)),
    "embedding": lambda index, weight: weight[index],
    "scaled_dot_product_attention": attention,
    "relu": jax.nn.relu,
    "gelu": lambda x, approximate=False: jax.nn.gelu(x, approximate),
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softmax": jax.nn.softmax,
    "dropout": dropout,
    "layer_norm": lambda x, scale=1.0, bias=0.0, epsilon=1e-5: normalized(x, -1, epsilon) * scale + bias,
    "rms_norm": lambda x, scale: x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "rotary": rotary,
    "add": lambda a, b: a + b,
    "cross_entropy": cross_entropy,
    "mse": lambda x, target: ((x - target) ** 2).mean(),
}


def results(functions: Callable[[str], Callable[..., Any]], dtype: str, arrays: list[Array]) -> dict[str, Any]:
    """Of each case what a function returns, and the gradients of its first result for some gradient of it.

    Arrays of float32 are given, as what is constant is computed when a function is compiled.
    """
    results: dict[str, dict[str, Array]] = {}
    rest = iter(arrays)
    for name in cases.CASES:
        call, floats = of_floats(name, functions)
        first, pull, others = jax.vjp(call, *(next(rest).astype(dtype) for _ in floats), has_aux=True)
        gradient = jnp.asarray(cases.normal(*first.shape, seed=9), dtype)
        results[name] = {str(i): each for i, each in enumerate((first, *others, *pull(gradient)))}
    return results


def of_floats(name: str, functions: Callable[[str], Callable[..., Any]]) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A case's function of its arrays of float32 alone, which returns its first result and the others; and these."""
    function, arguments, options = cases.CASES[name]
    floats = [i for i, each in enumerate(arguments) if getattr(each, "dtype", None) == np.float32]

    def call(*leaves: Array) -> tuple[Array, tuple[Array, ...]]:
        given = [leaves[floats.index(i)] if i in floats else each for i, each in enumerate(arguments)]
        every = functions(function)(*given, **options)
        return (every[0], every[1:]) if isinstance(every, tuple) else (every, ())

    return call, [arguments[i] for i in floats]


def outside() -> dict[str, dict[str, Any]]:
    """Of indices out of range, in compiled code, the loss and the gradient of its weight."""
    results: dict[str, dict[str, Any]] = {}
    for name, (loss, weight, size) in cases.INDEXED.items():
        compiled = jax.jit(jax.value_and_grad(partial(loss, functional)))
        for where, index in cases.outside(size).items():
            results[f"{name} {where}"] = dict(zip(("loss", "gradient"), compiled(weight, index), strict=True))
    return results


# --- optimizers -------------------------------------------------------------------------------------------------------


def optimized() -> dict[str, dict[str, Any]]:
    """Weights and slots after a few updates."""
    results = {}
    for name, (arguments, own, _) in cases.OPTIMIZERS.items():
        optimizer = getattr(optim, name)(**arguments, **own)
        weights, slots = cases.WEIGHTS, optimizer.init(cases.WEIGHTS)
        update = jax.jit(optimizer.update)
        for gradients in cases.GRADIENTS:
            weights, slots = update(weights, slots, gradients)
        results[name] = named({"weights": weights, "slots": slots})
    return results


# --- networks ---------------------------------------------------------------------------------------------------------


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x: Array, step: int | Array) -> Array:
        x = layers.Conv(8, (3, 3), strides=2, name="conv")(x)
        x = functional.relu(layers.BatchNorm(use_running_average=False, momentum=0.9, name="norm")(x))
        x = functional.global_avg_pool2d(functional.max_pool2d(x, 2))
        x = layers.Dropout(**cases.DROPOUT, deterministic=False)(x, step=step)
        return layers.Dense(10, name="dense")(x)


def cnn_step(state: dict[str, Any], images: Array, labels: Array) -> dict[str, Any]:
    optimizer = optim.sgd(0.1, **cases.CNN_SGD)

    def loss(weights: Any) -> tuple[Array, Any]:
        variables = {"params": weights, "batch_stats": state["batch_stats"]}
        logits, changed = CNN().apply(variables, images, state["slots"]["count"], mutable=["batch_stats"])
        return functional.cross_entropy(logits, labels), changed["batch_stats"]

    gradients, batch_stats = jax.grad(loss, has_aux=True)(state["weights"])
    weights, slots = optimizer.update(state["weights"], state["slots"], gradients)
    return {"weights": weights, "slots": slots, "batch_stats": batch_stats}


def cnn_state() -> dict[str, Any]:
    stats = {"mean": np.zeros(8, np.float32), "var": np.ones(8, np.float32)}
    slots = optim.sgd(0.1, **cases.CNN_SGD).init(cases.CNN_WEIGHTS)
    return {"weights": cases.CNN_WEIGHTS, "slots": slots, "batch_stats": {"norm": stats}}


def block_step(state: dict[str, Any], text: Array) -> dict[str, Any]:
    def loss(weights: dict[str, Array]) -> Array:
        return cases.block(functional, jnp.reshape, jnp.transpose, weights, text)

    gradients, _ = functional.clip_by_global_norm(jax.grad(loss)(state["weights"]), cases.LIMIT)
    weights, slots = optim.adamw(1e-2, eps=1e-7).update(state["weights"], state["slots"], gradients)
    return {"weights": weights, "slots": slots}


def block_state() -> dict[str, Any]:
    return {"weights": cases.BLOCK_WEIGHTS, "slots": optim.adamw(1e-2).init(cases.BLOCK_WEIGHTS)}


def trained(step: Callable[..., Any], state: dict[str, Any], batches: list[Any]) -> dict[str, Any]:
    for batch in batches:
        state = step(state, *batch)
    return state


def stored(state: dict[str, Any]) -> dict[str, Any]:
    """As a checkpoint gives it back."""
    return jax.tree.map(lambda array: np.array(array), state)


def networks(wrap: Callable[..., Any], resumed: bool = False) -> dict[str, dict[str, Any]]:
    results = {}
    for name, step, state, batches in (
        ("cnn", cnn_step, cnn_state(), cases.BATCHES),
        ("block", block_step, block_state(), [(text,) for text in cases.TEXTS]),
    ):
        wrapped = wrap(step)
        if resumed:
            state, batches = stored(trained(wrapped, state, batches[: cases.RESUMED])), batches[cases.RESUMED :]
        results[name] = named(trained(wrapped, state, batches))
    return results


def eagerly(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def named(state: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def perceptron_step(state: dict[str, Any], images: Array, labels: Array) -> dict[str, Any]:
    """Small enough to be run eagerly in seconds."""

    def loss(weights: Any) -> Array:
        x = functional.relu(functional.linear(images[:, 0, 0], weights["first"]))
        return functional.cross_entropy(functional.linear(x, weights["second"]), labels)

    weights, slots = optim.adam(0.1).update(state["weights"], state["slots"], jax.grad(loss)(state["weights"]))
    return {"weights": weights, "slots": slots}


def perceptron(wrap: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    weights = {"first": cases.normal(3, 10), "second": cases.normal(10, 10)}
    state = {"weights": weights, "slots": optim.adam(0.1).init(weights)}
    return {"perceptron": named(trained(wrap(perceptron_step), state, cases.BATCHES))}


# --- what is refused --------------------------------------------------------------------------------------------------


def refused() -> dict[str, str]:
    f, x, images, key = functional, cases.X, cases.IMAGES, jax.random.key(0)
    calls: dict[str, Callable[[], Any]] = {
        "float16": lambda: f.relu(x.astype(np.float16)),
        "bfloat16": lambda: f.linear(x, jnp.ones((6, 2), jnp.bfloat16)),
        "float64": lambda: f.layer_norm(x.astype(np.float64)),
        "empty": lambda: f.relu(x[:0]),
        "shapes": lambda: f.linear(x, cases.normal(5, 2)),
        "kernel": lambda: f.conv2d(images, cases.normal(9, 3, 4, 1)),
        "padding": lambda: f.max_pool2d(images, 3, padding=2),
        "index": lambda: f.embedding(np.array([5]), cases.normal(5, 3)),
        "labels": lambda: f.cross_entropy(cases.LOGITS, cases.LABELS - 1),
        "mask": lambda: f.scaled_dot_product_attention(cases.QUERY, cases.KEY, cases.VALUE, np.ones((5, 5))),
        "rate": lambda: f.dropout(x, 1.0, 0, 0),
        "one sample": lambda: f.batch_norm(cases.normal(1, 4), cases.CHANNELS, cases.CHANNELS, training=True),
        "step": lambda: layers.Dropout(0.5, stream=0, deterministic=False).apply({}, x),
        "layer's dtype": lambda: layers.Dense(3, dtype=jnp.bfloat16).init(key, x),
        "layer's axes": lambda: layers.LayerNorm(reduction_axes=(1, 2)).init(key, x),
        "weights": lambda: optim.adam(1e-3).init({"w": x.astype(np.float64)}),
        "stride": lambda: layers.Conv(3, (3, 3), strides=0).init(key, images),
        "group size": lambda: layers.GroupNorm(num_groups=None, group_size=0).init(key, images),
        "copies": lambda: f.fan_out(x, 0),
        "limit": lambda: f.clip_by_global_norm({"w": x}, float("nan")),
        "rate of NaN": lambda: optim.sgd(float("nan")),
        "rate below 0": lambda: optim.adam(jnp.float32(-1)),
        "rates": lambda: optim.sgd(jnp.ones(2)),
        "another rate": lambda: optim.sgd(0.1).update({"w": x}, {"count": 0}, {"w": x}, learning_rate=-1.0),
        "momentum": lambda: optim.sgd(0.1, momentum=1.0),
        "beta of NaN": lambda: optim.adam(0.1, b2=float("nan")),
        "beta below 0": lambda: optim.adamw(0.1, b1=-1),
        "decay": lambda: optim.adamw(0.1, weight_decay=float("nan")),
        "rho": lambda: optim.adadelta(rho=1.5),
    }
    calls |= {f"second derivative of {name}": partial(second_derivative, name) for name in cases.CASES}
    calls |= {f"second derivative, {name}": call for name, call in second_derivatives().items()}
    with jax.enable_x64(False):
        lines = {"no float64": line(lambda: f.relu(x))}
    return lines | {name: line(call) for name, call in calls.items()} | first_derivatives()


def second_derivative(name: str) -> Any:
    """Of a case, by its first array, as a gradient penalty has it."""
    call, arrays = of_floats(name, lambda name: getattr(functional, name))
    return jax.eval_shape(penalized(lambda *leaves: (call(*leaves)[0] ** 2).sum()), *arrays)


def penalized(loss: Callable[..., Array]) -> Callable[..., Any]:
    """The gradient of the squares of all gradients of a loss."""

    def penalty(*arrays: Array) -> Array:
        return sum(((each**2).sum() for each in jax.grad(loss, tuple(range(len(arrays))))(*arrays)), jnp.zeros(()))

    return jax.grad(penalty)


def second_derivatives() -> dict[str, Callable[[], Any]]:
    """Of one loss, in all the ways of JAX."""
    x, weight = cases.X[0], cases.normal(6, 6)

    def loss(weight: Array) -> Array:
        return functional.softmax(functional.linear(x, weight))[0, 0]

    def loop(weight: Array) -> Array:
        return lax.scan(lambda x, _: (functional.tanh(functional.linear(x, weight)), None), x, None, 2)[0].sum()

    def clipped(weight: Array) -> Array:
        return functional.clip_by_global_norm({"w": weight}, 0.1)[0]["w"].sum()

    def scaled(weight: Array, factor: Array) -> Array:
        return jax.grad(lambda weight: factor * loss(weight))(weight).sum()

    ways = {
        "compiled": jax.jit(penalized(loss)),
        "gradient compiled": penalized(jax.jit(loss)),
        "hessian": jax.hessian(loss),
        "reverse over reverse": jax.jacrev(jax.grad(loss)),
        "vmap": lambda weight: jax.vmap(penalized(loss))(weight[None]),
        "remat": penalized(jax.checkpoint(loss)),
        "scan": penalized(loop),
        "loss and gradient": jax.grad(lambda weight: jax.value_and_grad(loss)(weight)[0]),
        "of the incoming gradient": lambda weight: jax.grad(scaled, 1)(weight, 1.0),
        "clipped": jax.grad(clipped),
    }
    return {name: partial(jax.eval_shape, way, weight) for name, way in ways.items()}


def first_derivatives() -> dict[str, str]:
    """The refusals, of which there are none, where a gradient is a constant of the loss whose gradient is taken."""
    x = cases.X[0]

    def descended(x: Array) -> Array:
        constant = lax.stop_gradient(x)
        return functional.softmax(x - jax.grad(lambda x: functional.softmax(x)[0, 0])(constant))[0, 0]

    return {"gradient as a constant": line(lambda: jax.eval_shape(jax.grad(descended), x))}


def line(call: Callable[[], Any]) -> str:
    try:
        call()
    except UsageError as error:
        return str(error)
    return ""


def main(path: str, *eager: str) -> None:
    result: dict[str, dict[str, dict[str, Any]]]
    if eager:
        result = {"eager": networks(eagerly)}
    else:
        arguments = [each for _, several, _ in cases.CASES.values() for each in several]
        arrays = [jnp.asarray(each) for each in arguments if getattr(each, "dtype", None) == np.float32]
        result = {
            "compiled": jax.jit(partial(results, lambda name: getattr(functional, name), "float32"))(arrays),
            "float64": jax.jit(partial(results, OWN.__getitem__, "float64"))(arrays),
            "outside": outside(),
            "resumed": networks(jax.jit, resumed=True),
            "eager": perceptron(eagerly),
        }
        result["compiled"] |= networks(jax.jit) | perceptron(jax.jit) | optimized()
    cases.save(path, result, refused())


if __name__ == "__main__":
    main(*sys.argv[1:])
