"""Small trainings with JAX, one per scenario.

All run in one process, and each prints the hashes of its last weights.
"""

import sys
from collections.abc import Callable

import jax
import numpy as np
import optax
from hashes import report
from jax import numpy as jnp

COUNT = 6
np.random.seed(0)
DATA = np.random.RandomState(0).randn(COUNT, 8, 4).astype("float32")


def weights(tree: object) -> dict[str, np.ndarray]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def plain(scenario: str) -> None:
    """`eager`, `jit` with donated buffers, `clipped` with weights that are clipped after each step, or `scan`."""
    params = {scenario: {"kernel": jnp.full((4, 3), 0.1), "bias": jnp.zeros(3)}}  # optimizers differ in their names
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))

    def loss(params: dict, x: jax.Array) -> jax.Array:
        layer = params[scenario]
        return jnp.square(jnp.tanh(x @ layer["kernel"] + layer["bias"]) - 1).mean()

    def step(params: dict, state: optax.OptState, x: jax.Array) -> tuple:
        updates, state = optimizer.update(jax.grad(loss)(params, x), state, params)
        return optax.apply_updates(params, updates), state

    carry = params, optimizer.init(params)
    if scenario == "scan":
        all_steps = jax.jit(
            lambda carry: jax.lax.scan(lambda c, x: (step(*c, x), None), carry, DATA)[0], donate_argnums=0
        )
        carry = all_steps(carry)
    else:
        one = jax.jit(step, donate_argnums=(0, 1)) if scenario in ("jit", "clipped") else step
        for x in DATA:
            carry = one(*carry, x)
            if scenario == "clipped":
                clipped = {scenario: carry[0][scenario] | {"kernel": jnp.clip(carry[0][scenario]["kernel"], -0.1, 0.1)}}
                carry = clipped, carry[1]
    report(scenario, COUNT, weights(carry[0]))


def sharded(scenario: str) -> None:
    """Devices that share each batch, as with XLA_FLAGS=--xla_force_host_platform_device_count=2."""
    axis, whole = "devices", jax.sharding.PartitionSpec()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), (axis,))
    params, optimizer = {"kernel": jnp.full((4, 5), 0.1)}, optax.adam(1e-2)

    def step(params: dict, state: optax.OptState, x: jax.Array) -> tuple:
        gradients = jax.grad(lambda params: jnp.square(x @ params["kernel"] - 1).mean())(params)
        updates, state = optimizer.update(jax.lax.pmean(gradients, axis), state)
        return optax.apply_updates(params, updates), state

    spread = jax.shard_map(
        step, mesh=mesh, in_specs=(whole, whole, jax.sharding.PartitionSpec(axis)), out_specs=whole, check_vma=False
    )
    one, state = jax.jit(spread), optimizer.init(params)
    for x in DATA:
        params, state = one(params, state, x)
    report(scenario, COUNT, weights(params))


def divided(scenario: str) -> None:
    """Rows or columns of the weights on some devices, each of which has a part of the batch, if not `columns`: one jit.

    All numbers are multiples of a power of two, and small, so that no sum is rounded. `rows on 2 devices`.
    """
    way, _, devices, _ = scenario.split()
    mesh = jax.sharding.Mesh(np.array(jax.devices()[: int(devices)]), ("devices",))
    of_weights = jax.sharding.PartitionSpec(*(("devices", None) if way == "rows" else (None, "devices")))
    of_batch = jax.sharding.PartitionSpec("devices" if way == "rows" else None)
    data = np.round(DATA * 2) / 2
    optimizer = optax.sgd(0.5, momentum=0.5)

    @jax.jit
    def step(params: dict, state: optax.OptState, x: jax.Array) -> tuple:
        def loss(params: dict) -> jax.Array:
            return ((x @ params["kernel"]) * jnp.arange(8)).mean()

        updates, state = optimizer.update(jax.grad(loss)(params), state)
        return optax.apply_updates(params, updates), state

    params = {"kernel": jax.device_put(jnp.full((4, 8), 0.5), jax.sharding.NamedSharding(mesh, of_weights))}
    state = optimizer.init(params)
    for x in data:
        params, state = step(params, state, jax.device_put(x, jax.sharding.NamedSharding(mesh, of_batch)))
    report(scenario, COUNT, weights(params))


def key(scenario: str) -> None:
    """A step that draws, and counts."""
    params, optimizer = {"kernel": jnp.full((4, 7), 0.1)}, optax.sgd(0.1)

    @jax.jit
    def step(params: dict, state: optax.OptState, x: jax.Array, key: jax.Array, count: jax.Array) -> tuple:
        def loss(params: dict) -> jax.Array:
            kept = jax.random.bernoulli(key, 0.5, x.shape)
            return jnp.square(jnp.where(kept, x, 0) @ params["kernel"] - 1).mean() * count

        updates, state = optimizer.update(jax.grad(loss)(params), state)
        return optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    for count, x in enumerate(DATA):
        params, state = step(params, state, x, jax.random.fold_in(jax.random.key(0), count), jnp.float32(count + 1))
    report(scenario, COUNT, weights(params))


def with_state(scenario: str) -> None:
    """Haiku's way: state that a step is given and returns, beside keys of old."""
    params, optimizer = {"kernel": jnp.full((4, 4), 0.1)}, optax.sgd(0.1)

    @jax.jit
    def step(params: dict, state: dict, opt: optax.OptState, keys: jax.Array, rng: jax.Array, count: int, x: jax.Array):
        def loss(params: dict) -> tuple:
            again = x @ params["kernel"] + jax.random.normal(rng, x.shape) * jax.random.normal(keys[0])
            norm = {"mean": state["norm"]["mean"] * 0.9 + x.mean(0), "counter": state["norm"]["counter"] + 1}
            return jnp.square(again - x).mean() * count, ({"norm": norm}, again)

        gradients, (new, again) = jax.grad(loss, has_aux=True)(params)
        updates, opt = optimizer.update(gradients, opt)
        carried = optax.apply_updates(params, updates), new, opt, jax.vmap(jax.random.split)(keys)[:, 0], count + 1
        return again, carried

    opt, keys, count = optimizer.init(params), jax.random.split(jax.random.PRNGKey(0), 3), jnp.int32(1)
    state = {"norm": {"mean": jnp.zeros(4), "counter": jnp.zeros((), jnp.int32)}}
    for number, x in enumerate(DATA):
        _, carried = step(params, state, opt, keys, jax.random.PRNGKey(number), count, x)
        params, state, opt, keys, count = carried
    report(scenario, COUNT, weights(params))


def recurrent(scenario: str) -> None:
    """A network whose gradients XLA makes a part of the update: to ask for them as well gives other bits."""
    draw, size = np.random.RandomState(1), 16
    shapes = {"input": (3 * size, 2), "hidden": (3 * size, size), "bias": (3 * size,), "output": (1, size)}
    params = {name: jnp.float32(draw.uniform(-0.25, 0.25, shape)) for name, shape in shapes.items()}
    optimizer = optax.adam(3e-3)

    def predicted(params: dict, sequence: jax.Array) -> jax.Array:
        def cell(state: jax.Array, x: jax.Array) -> tuple:
            seen, kept = (jnp.split(a, 3) for a in (params["input"] @ x + params["bias"], params["hidden"] @ state))
            reset, update = (jax.nn.sigmoid(seen[gate] + kept[gate]) for gate in (0, 1))
            new = jnp.tanh(seen[2] + reset * (kept[2] + 0.1))
            return new + update * (state - new), None

        return jax.nn.sigmoid(params["output"] @ jax.lax.scan(cell, jnp.zeros(size), sequence)[0])

    @jax.jit
    def step(params: dict, state: optax.OptState, x: jax.Array, y: jax.Array) -> tuple:
        def loss(params: dict) -> jax.Array:
            result = jax.vmap(predicted, (None, 0))(params, x)
            return -jnp.mean(y * jnp.log(result) + (1 - y) * jnp.log(1 - result))

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    for _ in range(COUNT):
        times = np.linspace(0, 6.28, 16) + draw.uniform(0, 6.28, (32, 1))
        y = draw.randint(0, 2, (32, 1)).astype("float32")
        x = np.stack([np.sin(times) * (2 * y - 1), np.cos(times)], -1).astype("float32")
        params, state = step(params, state, x, y)
    report(scenario, COUNT, weights(params))


def linen(scenario: str) -> None:
    """Flax' TrainState."""
    from flax import linen
    from flax.training.train_state import TrainState

    model = linen.Dense(2)
    params = model.init(jax.random.key(0), DATA[0])["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1, momentum=0.9))

    @jax.jit
    def step(state: TrainState, x: jax.Array) -> TrainState:
        gradients = jax.grad(lambda params: jnp.square(state.apply_fn({"params": params}, x)).mean())(state.params)
        return state.apply_gradients(grads=gradients)

    for x in DATA:
        state = step(state, x)
    report(scenario, COUNT, weights(state.params))


def nnx(scenario: str) -> None:
    from flax import nnx

    model = nnx.Linear(4, 5, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model: nnx.Linear, optimizer: nnx.Optimizer, x: jax.Array) -> None:
        optimizer.update(model, nnx.grad(lambda model: jnp.square(model(x)).mean())(model))

    for x in DATA:
        step(model, optimizer, x)
    report(scenario, COUNT, {"kernel": np.asarray(model.kernel[...]), "bias": np.asarray(model.bias[...])})


def averages(scenario: str, compiled: Callable[[Callable], Callable]) -> None:
    """A module of NNX with state that is no Param: BatchStat, RngState.

    Its averages are reported as the observer sees them last: after an eager step, before a compiled one.
    """
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.dense, self.norm = nnx.Linear(4, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.dropout(self.norm(self.dense(x)))

    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)

    def step(net: Network, optimizer: nnx.Optimizer, x: jax.Array) -> None:
        optimizer.update(net, nnx.grad(lambda net: jnp.square(net(x)).mean())(net))

    step, states = compiled(step), []
    for x in DATA:
        states.append(nnx.as_pure(nnx.state(model, nnx.BatchStat)))
        step(model, optimizer, x)
    states.append(nnx.as_pure(nnx.state(model, nnx.BatchStat)))
    report(scenario, COUNT, weights(states[-1 if compiled is eager else -2]))


def linen_averages(scenario: str, compiled: Callable[[Callable], Callable]) -> None:
    """`batch_stats` beside the weights in a TrainState, as Flax' guide on batch normalization has it."""
    from flax import linen
    from flax.training import train_state

    class State(train_state.TrainState):
        batch_stats: dict

    model = linen.BatchNorm(use_running_average=False)
    made = model.init(jax.random.key(0), DATA[0])
    transform, averaged = optax.sgd(1e-2), made["batch_stats"]
    state = State.create(apply_fn=model.apply, params=made["params"], tx=transform, batch_stats=averaged)

    def step(state: State, x: jax.Array) -> State:
        def loss(params: dict) -> tuple:
            together = {"params": params, "batch_stats": state.batch_stats}
            y, new = state.apply_fn(together, x, mutable=["batch_stats"])
            return jnp.square(y - 1).mean(), new

        gradients, new = jax.grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients).replace(batch_stats=new["batch_stats"])

    step = compiled(step)
    for x in DATA:
        state = step(state, x)
    report(scenario, COUNT, weights(state.batch_stats))


def eager(step: Callable) -> Callable:
    return step


def nnx_jit(step: Callable) -> Callable:
    from flax import nnx

    return nnx.jit(step)


def equinox(scenario: str) -> None:
    import equinox

    model = equinox.nn.MLP(4, 1, 6, 1, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(equinox.filter(model, equinox.is_array))

    @equinox.filter_jit(donate="all")
    def step(model: equinox.Module, state: optax.OptState, x: jax.Array) -> tuple:
        gradients = equinox.filter_grad(lambda model: jnp.square(jax.vmap(model)(x)).mean())(model)
        updates, state = optimizer.update(gradients, state, model)
        return equinox.apply_updates(model, updates), state

    for x in DATA:
        model, state = step(model, state, x)
    report(scenario, COUNT, weights(equinox.filter(model, equinox.is_array)))


SCENARIOS: dict[str, Callable[[str], None]] = {
    "eager": plain,
    "jit": plain,
    "clipped": plain,
    "scan": plain,
    "key": key,
    "state": with_state,
    "sharded": sharded,
    **dict.fromkeys(["rows on 1 device", "rows on 2 devices", "rows on 4 devices", "columns on 4 devices"], divided),
    "recurrent": recurrent,
    "linen": linen,
    "nnx": nnx,
    "averages, eager": lambda name: averages(name, eager),
    "averages": lambda name: averages(name, nnx_jit),
    "linen averages, eager": lambda name: linen_averages(name, eager),
    "linen averages": lambda name: linen_averages(name, jax.jit),
    "equinox": equinox,
}

if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        SCENARIOS[scenario](scenario)
