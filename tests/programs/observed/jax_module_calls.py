"""Two steps of each of some small networks in JAX; prints what a program sees of its first step, a line of JSON for each.

Arguments: scenarios. Each has three layers, `first`, `second` and `third` where the library lets it choose names.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from jax import numpy as jnp

WIDTH = 4
DATA = np.random.RandomState(0).randn(2, 8, WIDTH).astype("float32")
OPTIMIZER = optax.sgd(0.1)


def sha(array: Any) -> str:
    """As a record names an array."""
    content = np.asarray(array)
    return hashlib.sha256(
        f"{content.dtype.name} {','.join(map(str, content.shape))}\n".encode() + content.tobytes()
    ).hexdigest()


def report(**seen: Any) -> None:
    print(json.dumps(jax.tree.map(sha, seen), default=arrays_of))


def arrays_of(module: Any) -> dict[str, Any]:
    """The fields of a module of Equinox that are no numbers."""
    return {name: value for name, value in vars(module).items() if not isinstance(value, int)}


def train(params: Any, loss: Callable, compiled: bool = True) -> None:
    """`loss` returns what the layers return, too."""

    def step(params: Any, state: Any, x: Any) -> Any:
        (value, outputs), gradients = jax.value_and_grad(loss, has_aux=True)(params, x)
        updates, state = OPTIMIZER.update(
            jax.tree.map(lambda each: each / 2, gradients), state
        )  # as if they were clipped
        return optax.apply_updates(params, updates), state, value, outputs, gradients

    step = jax.jit(step) if compiled else step
    state = OPTIMIZER.init(params)
    for number, x in enumerate(DATA):
        loss(params, x)  # an evaluation
        before = params
        params, state, value, outputs, gradients = step(params, state, x)
        if not number:
            report(x=x, params=before, loss=value, outputs=outputs, gradients=gradients)


def linen(remat: bool = False, compiled: bool = True) -> None:
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            layer = nn.remat(nn.Dense) if remat else nn.Dense
            x = nn.relu(layer(6, name="first")(x))
            x = nn.relu(layer(6, name="second")(x))
            return layer(1, name="third")(x)

    net = Net()
    apply = jax.jit(net.apply, static_argnames=("capture_intermediates", "mutable"))  # compiled by itself, too

    def loss(params: Any, x: Any) -> Any:
        y, state = apply({"params": params}, x, capture_intermediates=True, mutable=("intermediates",))
        own = {name: call["__call__"][0] for name, call in state["intermediates"].items() if name != "__call__"}
        return jnp.square(y).mean(), own

    train(net.init(jax.random.key(0), DATA[0])["params"], loss, compiled)


def haiku() -> None:
    import haiku

    def forward(x: Any) -> Any:
        first = haiku.Linear(6, name="first")(x)
        second = haiku.Linear(6, name="second")(jax.nn.relu(first))
        third = haiku.Linear(1, name="third")(jax.nn.relu(second))
        return jnp.square(third).mean(), {"first": first, "second": second, "third": third}

    net = haiku.without_apply_rng(haiku.transform(forward))
    train(net.init(jax.random.key(0), DATA[0]), net.apply)


def equinox() -> None:
    import equinox

    class Net(equinox.Module):
        first: equinox.nn.Linear
        second: equinox.nn.Linear
        third: equinox.nn.Linear

        def __call__(self, x: Any) -> Any:
            first = self.first(x)
            second = self.second(jax.nn.relu(first))
            return {"first": first, "second": second, "third": self.third(jax.nn.relu(second))}

    def loss(net: Net, x: Any) -> Any:
        outputs = jax.vmap(net)(x)
        return jnp.square(outputs["third"]).mean(), outputs

    keys = jax.random.split(jax.random.key(0), 3)
    sizes = zip((WIDTH, 6, 6), (6, 6, 1), keys, strict=True)
    train(Net(*(equinox.nn.Linear(a, b, key=key) for a, b, key in sizes)), loss)


def nnx() -> None:
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.first, self.second = nnx.Linear(WIDTH, 6, rngs=rngs), nnx.Linear(6, 6, rngs=rngs)
            self.third = nnx.Linear(6, 1, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            first = self.first(x)
            second = self.second(nnx.relu(first))
            return {"first": first, "second": second, "third": self.third(nnx.relu(second))}

    net = Net()
    optimizer = nnx.Optimizer(net, OPTIMIZER, wrt=nnx.Param)

    @nnx.jit
    def step(net: Net, optimizer: nnx.Optimizer, x: Any) -> Any:
        def loss(net: Net) -> Any:
            outputs = net(x)
            return jnp.square(outputs["third"]).mean(), outputs

        (value, outputs), gradients = nnx.value_and_grad(loss, has_aux=True)(net)
        optimizer.update(net, jax.tree.map(lambda each: each / 2, gradients))
        return value, outputs, nnx.to_pure_dict(gradients)

    for number, x in enumerate(DATA):
        net(x)
        before = nnx.to_pure_dict(nnx.state(net, nnx.Param))
        before = jax.tree.map(np.array, before)
        value, outputs, gradients = step(net, optimizer, x)
        if not number:
            report(x=x, params=before, loss=value, outputs=outputs, gradients=gradients)


def taught() -> None:
    """A model that learns what another one of the same layers says, beside a loss that is a module."""
    from flax import nnx

    class Distance(nnx.Module):
        def __call__(self, a: Any, b: Any) -> Any:
            return jnp.square(a - b).mean()

    rngs = nnx.Rngs(0)
    student, teacher = (nnx.Sequential(nnx.Linear(WIDTH, 2, rngs=rngs), nnx.relu) for _ in range(2))
    optimizer = nnx.Optimizer(student, OPTIMIZER, wrt=nnx.Param)

    @nnx.jit
    def step(student: Any, teacher: Any, optimizer: nnx.Optimizer, x: Any) -> None:
        gradients = nnx.grad(lambda student: Distance()(student(x), teacher(x)))(student)
        optimizer.update(student, gradients)

    for x in DATA:
        step(student, teacher, optimizer, x)
    report()


def scanned() -> None:
    """Layers in a loop, in a loop over the steps."""
    from flax import linen as nn

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x: Any, _: Any) -> Any:
            return nn.relu(nn.Dense(WIDTH, name="dense")(x)), None

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            layers = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
            return layers(name="layers")(x, None)[0]

    net = Net()
    params = net.init(jax.random.key(0), DATA[0])

    def step(carried: Any, x: Any) -> Any:
        params, state = carried
        gradients = jax.grad(lambda params: jnp.square(net.apply(params, x)).mean())(params)
        updates, state = OPTIMIZER.update(gradients, state)
        return (optax.apply_updates(params, updates), state), gradients

    _, gradients = jax.jit(lambda carried: jax.lax.scan(step, carried, DATA))((params, OPTIMIZER.init(params)))
    report(gradients=jax.tree.map(lambda each: each[0], gradients))


def eager_choice() -> None:
    """A loss that asks for a number."""
    weights = jnp.ones(WIDTH)

    def loss(weights: Any, x: Any) -> Any:
        value = jnp.square(x @ weights).mean()
        return (value if value > 0 else -value), {}

    train({"w": weights}, lambda params, x: loss(params["w"], x), compiled=False)


SCENARIOS: dict[str, Callable[[], None]] = {
    "linen": linen,
    "remat": lambda: linen(remat=True),
    "eager": lambda: linen(compiled=False),
    "nnx": nnx,
    "equinox": equinox,
    "haiku": haiku,
    "scanned": scanned,
    "taught": taught,
    "eager_choice": eager_choice,
}

if __name__ == "__main__":
    for scenario in sys.argv[1:]:
        SCENARIOS[scenario]()
