"""Ways to call a step of JAX that is written by hand, one training per scenario.

Each prints its name, its number of steps, and the hashes of its last weights.
"""

import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hashes import report

COUNT = 5
DATA = np.random.RandomState(0).randn(COUNT, 8, 4).astype("float32")
warnings.filterwarnings("ignore", message="Some donated buffers were not usable")


def weights() -> dict[str, jax.Array]:
    return {"w": jnp.full((4, 3), 0.5), "b": jnp.zeros(3)}


def loss(weights: dict, x: jax.Array) -> jax.Array:
    return jnp.square(x @ weights["w"] + weights["b"] - 1).mean()


def update(weights: dict, x: jax.Array) -> tuple:
    value, gradients = jax.value_and_grad(loss)(weights, x)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def train(name: str, step: Callable) -> None:
    result = weights()
    for x in DATA:
        result, _ = step(result, x)
    report(name, COUNT, result)


def ahead(name: str) -> None:
    """What predicts, and a step, both compiled ahead of time, and called by turns."""
    result = weights()
    predict = jax.jit(lambda weights, x: x @ weights["w"]).lower(result, DATA[0]).compile()
    step = jax.jit(update).lower(result, DATA[0]).compile()
    for x in DATA:
        predict(result, x)
        result, _ = step(result, x)
    report(name, COUNT, result)


def static(name: str) -> None:
    """Compiled ahead of time with a static argument, which is given no more."""

    @functools.partial(jax.jit, static_argnums=0)
    def step(double: bool, weights: dict, velocity: dict, x: jax.Array) -> tuple:
        gradients = jax.grad(loss)(weights, x * 2 if double else x)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda w, v: w - 0.1 * v, weights, velocity), velocity

    result, velocity = weights(), jax.tree.map(jnp.zeros_like, weights())
    step = step.lower(True, result, velocity, DATA[0]).compile()
    for x in DATA:
        result, velocity = step(result, velocity, x)
    report(name, COUNT, result)


def lowered(name: str) -> None:
    train(name, jax.jit(update).lower(weights(), DATA[0]).compile())


def traced(name: str) -> None:
    train(name, jax.jit(update).trace(weights(), DATA[0]).lower().compile())


def donated(name: str) -> None:
    """Compiled ahead, with donated buffers and a name of the batch."""
    step = jax.jit(update, donate_argnames="weights").lower(weights(), x=DATA[0]).compile()
    train(name, lambda result, x: step(result, x=x))


def bound(name: str) -> None:
    """A step of which an argument is bound."""

    @functools.partial(jax.jit, static_argnames="double", donate_argnames="weights")
    def step(rate: float, weights: dict, x: jax.Array, double: bool) -> tuple:
        gradients = jax.grad(loss)(weights, x * 2 if double else x)
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradients), {}

    train(name, functools.partial(step, 0.1, double=True))


def checkpointed(name: str) -> None:
    @jax.jit
    def step(weights: dict, x: jax.Array) -> tuple:
        gradients = jax.grad(jax.checkpoint(loss))(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), {}

    train(name, step)


def history(name: str) -> None:
    """A result that holds the state with one more key each time, a list that grows, and metrics."""

    @jax.jit
    def step(state: dict, x: jax.Array) -> tuple:
        new, value = update(state["weights"], x)
        return {"weights": new, "losses": [*state["losses"], value]}, {"loss": value}

    state: dict[str, Any] = {"weights": weights(), "losses": []}
    for x in DATA:
        state, _ = step(state, x)
    report(name, COUNT, state["weights"])


def one_more(name: str) -> None:
    """A result that holds all of the argument, and its loss beside; the loss is taken out again."""

    @jax.jit
    def step(state: dict, x: jax.Array) -> dict:
        new, value = update({name: state[name] for name in ("w", "b")}, x)
        return {**new, "loss": value}

    state = weights()
    for x in DATA:
        state = step(state, x)
        del state["loss"]
    report(name, COUNT, state)


class State(NamedTuple):
    """Weights and what goes along with them."""

    weights: dict
    momentum: dict
    count: jax.Array


def momentum(state: State, x: jax.Array) -> State:
    gradients = jax.grad(loss)(state.weights, x)
    velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state.momentum, gradients)
    new = jax.tree.map(lambda w, v: w - 0.1 * v, state.weights, velocity)
    return State(new, velocity, state.count + 1)


def start() -> State:
    return State(weights(), jax.tree.map(jnp.zeros_like, weights()), jnp.int32(0))


def split_up(name: str) -> None:
    """A state that is taken apart and made anew between two steps."""
    step, (result, velocity, _) = jax.jit(momentum), start()
    for count, x in enumerate(DATA):
        state = step(State(result, velocity, jnp.int32(count)), x)
        result, velocity = state.weights, state.momentum
    report(name, COUNT, result)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Batch:
    """A state as an object that is given its new parts."""

    weights: dict
    x: jax.Array


def packed(name: str) -> None:
    """Weights and batch in one argument; the weights come back alone."""

    @jax.jit
    def step(both: Batch) -> tuple:
        return update(both.weights, both.x)

    result = weights()
    for x in DATA:
        result, _ = step(Batch(result, x))
    report(name, COUNT, result)


def flat(name: str) -> None:
    """Weights as arguments of their own, one each, and as one tuple back."""

    @jax.jit
    def step(w: jax.Array, b: jax.Array, x: jax.Array) -> tuple:
        new, value = update({"w": w, "b": b}, x)
        return value, (new["w"], new["b"])

    w, b = weights().values()
    for x in DATA:
        _, (w, b) = step(w, b, x)
    report(name, COUNT, {"w": w, "b": b})


def whole(name: str) -> None:
    """A whole training in one call."""
    report(name, COUNT, jax.jit(lambda w: jax.lax.scan(lambda c, x: (update(c, x)[0], None), w, DATA)[0])(weights()))


def counted(name: str) -> None:
    """A whole training in a loop of JAX."""
    data = jnp.asarray(DATA)
    report(
        name, COUNT, jax.jit(lambda w: jax.lax.fori_loop(0, COUNT, lambda i, c: update(c, data[i])[0], w))(weights())
    )


def until(name: str) -> None:
    data = jnp.asarray(DATA)

    def body(carry: tuple) -> tuple:
        count, result = carry
        return count + 1, update(result, data[count])[0]

    report(name, COUNT, jax.jit(lambda w: jax.lax.while_loop(lambda c: c[0] < COUNT, body, (0, w)))(weights())[1])


def eager(name: str) -> None:
    """Nothing is compiled by the program."""
    train(name, update)


def eager_anew(name: str) -> None:
    """A gradient of a new function for each batch."""
    result = weights()
    for x in DATA:
        gradients = jax.grad(lambda weights: loss(weights, x))(result)  # noqa: B023
        result = jax.tree.map(lambda w, g: w - 0.1 * g, result, gradients)
    report(name, COUNT, result)


def eager_update(name: str) -> None:
    """A gradient that is not compiled, and an update that is: one step."""

    @jax.jit
    def step(weights: dict, gradients: dict) -> dict:
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    result = weights()
    for x in DATA:
        result = step(result, jax.grad(loss)(result, x))
    report(name, COUNT, result)


def loop_outside(name: str) -> None:
    """A loop of JAX that the program does not compile by itself."""
    report(name, COUNT, jax.lax.scan(lambda c, x: (update(c, x)[0], None), weights(), DATA)[0])


def epochs(name: str) -> None:
    """An epoch in each call."""

    @jax.jit
    def epoch(weights: dict, data: jax.Array) -> dict:
        return jax.lax.scan(lambda c, x: (update(c, x)[0], None), weights, data)[0]

    result = weights()
    for _ in range(COUNT):
        result = epoch(result, DATA)
    report(name, COUNT, result)


def mapped(name: str) -> None:
    devices = jax.device_count()

    @functools.partial(jax.pmap, axis_name="devices")
    def step(weights: dict, x: jax.Array) -> dict:
        gradients = jax.lax.pmean(jax.grad(loss)(weights, x), "devices")
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    result = jax.tree.map(lambda w: jnp.stack([w] * devices), weights())
    for x in DATA:
        result = step(result, x.reshape(devices, -1, 4))
    report(name, COUNT, result)


def sharded(name: str) -> None:
    mesh, whole = jax.sharding.Mesh(np.array(jax.devices()), ("devices",)), jax.sharding.PartitionSpec()

    def step(weights: dict, x: jax.Array) -> dict:
        gradients = jax.lax.pmean(jax.grad(loss)(weights, x), "devices")
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    specs = (whole, jax.sharding.PartitionSpec("devices"))
    spread = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=whole, check_vma=False))
    result = weights()
    for x in DATA:
        result = spread(result, x)
    report(name, COUNT, result)


def flattened(name: str) -> None:
    """One vector of all weights."""
    from jax.flatten_util import ravel_pytree

    vector, restore = ravel_pytree(weights())

    @jax.jit
    def step(vector: jax.Array, x: jax.Array) -> jax.Array:
        return vector - 0.1 * jax.grad(lambda v: loss(restore(v), x))(vector)

    for x in DATA:
        vector = step(vector, x)
    report(name, COUNT, {"vector": vector})


def by_vjp(name: str) -> None:
    @jax.jit
    def step(weights: dict, x: jax.Array) -> tuple:
        value, pull = jax.vjp(lambda w: loss(w, x), weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, pull(jnp.ones_like(value))[0]), value

    train(name, step)


def equinox_updates(name: str) -> None:
    """Equinox, its apply_updates of gradients made by hand."""
    import equinox

    @equinox.filter_jit
    def step(model: Any, x: jax.Array) -> Any:
        gradients = equinox.filter_grad(lambda model: jnp.square(jax.vmap(model)(x) - 1).mean())(model)
        return equinox.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))

    equinox_train(name, step)


def equinox_tree(name: str) -> None:
    """Equinox, all by hand."""
    import equinox

    @equinox.filter_jit
    def step(model: Any, x: jax.Array) -> Any:
        gradients = equinox.filter_grad(lambda model: jnp.square(jax.vmap(model)(x) - 1).mean())(model)
        return jax.tree.map(lambda p, g: p if g is None else p - 0.1 * g, model, gradients)

    equinox_train(name, step)


def equinox_pair(name: str) -> None:
    """Equinox with a momentum and a loss, and what is no array beside; all buffers are donated."""
    import equinox

    @equinox.filter_jit(donate="all")
    def step(model: Any, velocity: Any, x: jax.Array, rate: float) -> tuple:
        def loss(model: Any) -> jax.Array:
            return jnp.square(jax.vmap(model)(x) - 1).mean()

        value, gradients = equinox.filter_value_and_grad(loss)(model)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        model = jax.tree.map(lambda p, v: p if v is None else p - rate * v, model, velocity)
        return value, model, velocity

    model = equinox.nn.MLP(4, 3, 6, 1, key=jax.random.key(0))
    velocity = jax.tree.map(jnp.zeros_like, equinox.filter(model, equinox.is_array))
    for x in DATA:
        _, model, velocity = step(model, velocity, x, 0.1)
    equinox_report(name, model)


def equinox_ahead(name: str) -> None:
    """Compiled ahead of time by Equinox."""
    import equinox

    @equinox.filter_jit
    def step(model: Any, x: jax.Array) -> Any:
        gradients = equinox.filter_grad(lambda model: jnp.square(jax.vmap(model)(x) - 1).mean())(model)
        return jax.tree.map(lambda p, g: p if g is None else p - 0.1 * g, model, gradients)

    model = equinox.nn.MLP(4, 3, 6, 1, key=jax.random.key(0))
    equinox_train(name, step.lower(model, jnp.asarray(DATA[0])).compile())


def equinox_grads(name: str) -> None:
    """Equinox: gradients are compiled, the update is not."""
    import equinox

    @equinox.filter_jit
    @equinox.filter_value_and_grad
    def gradients(model: Any, x: jax.Array) -> jax.Array:
        return jnp.square(jax.vmap(model)(x) - 1).mean()

    def step(model: Any, x: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p if g is None else p - 0.1 * g, model, gradients(model, x)[1])

    equinox_train(name, step)


def equinox_partition(name: str) -> None:
    """Equinox' partition and jax.jit."""
    import equinox

    model = equinox.nn.MLP(4, 3, 6, 1, key=jax.random.key(0))
    params, static = equinox.partition(model, equinox.is_array)

    @jax.jit
    def step(params: Any, x: jax.Array) -> Any:
        gradients = jax.grad(lambda p: jnp.square(jax.vmap(equinox.combine(p, static))(x) - 1).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    for x in DATA:
        params = step(params, x)
    equinox_report(name, params)


def equinox_train(name: str, step: Callable) -> None:
    import equinox

    model = equinox.nn.MLP(4, 3, 6, 1, key=jax.random.key(0))
    for x in DATA:
        model = step(model, x)
    equinox_report(name, model)


def equinox_report(name: str, model: Any) -> None:
    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    report(name, COUNT, {key: leaf for key, leaf in named.items() if hasattr(leaf, "dtype")})


SEEN = [ahead, static, lowered, traced, donated, bound, checkpointed, history, one_more, split_up, packed, flat]
SEEN += [epochs, mapped, sharded, flattened, by_vjp]
GRADIENTS = [eager, eager_anew, eager_update]
UNSEEN = [whole, counted, until, loop_outside]
EQUINOX = [equinox_updates, equinox_tree, equinox_pair, equinox_ahead, equinox_partition, equinox_grads]
SCENARIOS: dict[str, Callable[[str], None]] = {each.__name__: each for each in SEEN + GRADIENTS + UNSEEN + EQUINOX}

if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        SCENARIOS[scenario](scenario)
