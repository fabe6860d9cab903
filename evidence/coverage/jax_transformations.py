"""Programs of JAX's transformations, control flow, types and devices."""

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array, lax, nn
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from evidence.coverage.jax_networks import Params, batches, descended, descent, initial, loss_of
from evidence.coverage.jax_training import Training, normal
from evidence.coverage.registry import program


@program("jax", "mlp")
def mlp() -> Training:
    return descent(loss_of, initial())


@program("jax", "mlp, without jit")
def eager() -> Training:
    return descent(loss_of, initial(), compiled=False)


@program("jax", "bfloat16 alone")
def bfloat16() -> Training:
    return descent(loss_of, initial(jnp.bfloat16), [(x.astype(jnp.bfloat16), y) for x, y in batches()])


@program("jax", "float16, scaled loss")
def float16() -> Training:
    """Steps whose gradients are not finite are left out, and the scale is halved."""

    def step(state: Any, batch: Any) -> Any:
        params, scale = state
        halves = jax.tree.map(lambda p: p.astype(jnp.float16), params)
        x, y = batch
        value, gradients = jax.value_and_grad(lambda p: loss_of(p, (x.astype(jnp.float16), y)) * scale)(halves)
        gradients = jax.tree.map(lambda g: g.astype(jnp.float32) / scale, gradients)
        finite = jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(gradients)]).all()
        params = lax.cond(finite, lambda: descended(params, gradients), lambda: params)
        return (params, jnp.where(finite, scale, scale / 2)), value.astype(jnp.float32)

    return Training((initial(), jnp.float32(2.0**14)), step, batches())


@program("jax", "float64")
def float64() -> Any:
    with jax.enable_x64(True):
        made = descent(loss_of, initial(jnp.float64), [(x.astype(np.float64), y) for x, y in batches()])
        return made.run()


@program("jax", "checkpoint, by a policy")
def checkpointed() -> Training:
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

    def loss(params: Params, batch: Any) -> Array:
        x, y = batch
        layer = jax.checkpoint(lambda x, layer: nn.gelu(x @ layer[0] + layer[1]), policy=policy)
        for each in params[:-1]:
            x = layer(x, each)
        return loss_of(params[-1:], (x, y))

    return descent(loss, initial(sizes=(8, 16, 16, 4)))


@program("jax", "vmap of an ensemble")
def ensemble() -> Training:
    params = [initial(key=key) for key in range(3)]

    def loss(params: Any, batch: Any) -> Array:
        return jax.vmap(loss_of, (0, None))(params, batch).sum()

    return descent(loss, jax.tree.map(lambda *each: jnp.stack(each), *params))


@jax.custom_vjp
def clipped(x: Array) -> Array:
    """Gradients are clipped."""
    return x


clipped.defvjp(lambda x: (x, None), lambda _, gradient: (jnp.clip(gradient, -0.01, 0.01),))


@jax.custom_jvp
def softened(x: Array) -> Array:
    """The positive part, with the derivative of a sigmoid function."""
    return jnp.maximum(x, 0)


@softened.defjvp
def _softened_jvp(primals: Any, tangents: Any) -> Any:
    return softened(*primals), nn.sigmoid(4.0 * primals[0]) * tangents[0]


@program("jax", "custom_vjp, custom_jvp")
def custom() -> Training:
    def loss(params: Params, batch: Any) -> Array:
        x, y = batch
        (weight, bias), *rest = params
        return loss_of(rest, (clipped(softened(x @ weight + bias)), y))

    return descent(loss, initial())


@program("jax", "while_loop, cond, switch, fori_loop")
def control_flow() -> Training:
    """A fixed point, whose derivative is by the implicit function theorem; steps that depend on numbers."""

    @jax.custom_vjp
    def fixed(weight: Array, x: Array) -> Array:
        def unsettled(state: Any) -> Array:
            old, new, count = state
            return (jnp.abs(new - old).max() > 1e-5) & (count < 50)

        return lax.while_loop(unsettled, lambda s: (s[1], jnp.tanh(s[1] @ weight + x), s[2] + 1), (x, x + 1, 0))[1]

    def forwards(weight: Array, x: Array) -> Any:
        result = fixed(weight, x)
        return result, (weight, x, result)

    def backwards(saved: Any, gradient: Array) -> Any:
        weight, x, result = saved
        _, pull = jax.vjp(lambda z: jnp.tanh(z @ weight + x), result)
        total = lax.fori_loop(0, 10, lambda _, u: gradient + pull(u)[0], gradient)
        return jax.vjp(lambda w, x: jnp.tanh(result @ w + x), weight, x)[1](total)

    fixed.defvjp(forwards, backwards)

    def loss(params: Any, batch: Any) -> Array:
        x, y = batch
        z = fixed(params["inner"], x)
        z = lax.switch(jnp.argmax(z.sum(0)) % 3, [jnp.sin, jnp.cos, nn.relu], z)
        z = lax.cond(z.sum() > 0, lambda z: z * 2.0, lambda z: z / 3.0, z)
        return loss_of(params["outer"], (z, y))

    inner = 0.05 * jnp.asarray(normal(8, 8, key=5))
    return descent(loss, {"inner": inner, "outer": initial(sizes=(8, 4))})


@program("jax", "second derivatives")
def second() -> Training:
    """A Hessian, a product with it, Jacobians forward and back; a step of Newton's by conjugate gradients."""

    def step(params: Any, batch: Any) -> Any:
        x, y = batch

        def loss(weight: Array) -> Array:
            return loss_of([(weight, jnp.zeros(4))], (x, y)) + 0.1 * (weight**2).sum()

        value, gradient = jax.value_and_grad(loss)(params)
        product = lambda v: jax.jvp(jax.grad(loss), (params,), (v,))[1]  # noqa: E731
        result, _ = jax.scipy.sparse.linalg.cg(product, gradient, maxiter=5)
        row = params[0]
        whole = jax.hessian(lambda row: loss(params.at[0].set(row)))(row)
        return params - result - 0.001 * (whole @ row)[None], value

    return Training(jnp.asarray(normal(8, 4, key=3)), step, batches())


@program("jax", "jacobians")
def jacobians() -> Any:
    x = jnp.asarray(normal(6, key=2))
    function = lambda x: jnp.cumsum(jnp.sort(x) ** 3) / (1.0 + jnp.exp(x))  # noqa: E731
    return jax.jit(jax.jacfwd(function))(x), jax.jit(jax.jacrev(function))(x), jax.jvp(function, (x,), (x,))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("batch",))


@program("jax", "shard_map")
def shard_map() -> Training:
    """On the devices that there are: one, if the program was not given others."""
    mesh = _mesh()

    def gradient(params: Params, x: Array, y: Array) -> Any:
        return lax.pmean(jax.value_and_grad(loss_of)(params, (x, y)), "batch")

    part = PartitionSpec("batch")
    mapped = jax.shard_map(
        gradient, mesh=mesh, in_specs=(PartitionSpec(), part, part), out_specs=PartitionSpec(), check_vma=False
    )

    def step(params: Params, batch: Any) -> Any:
        value, gradients = mapped(params, *batch)
        return descended(params, gradients), value

    return Training(initial(), step, batches())


@program("jax", "pmap")
def pmap() -> Any:
    mapped = jax.pmap(lambda p, b: lax.pmean(jax.value_and_grad(loss_of)(p, b), "i"), axis_name="i", in_axes=(None, 0))
    params = initial()
    for number in range(3):
        batch = jax.tree.map(lambda x: x.reshape(jax.device_count(), -1, *x.shape[1:]), batches()[number % 2])
        _, gradients = mapped(params, batch)
        params = descended(params, jax.tree.map(lambda g: g[0], gradients))
    return params


@program("jax", "arrays of a sharding, donated")
def sharded() -> Any:
    mesh = _mesh()
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))

    @partial(jax.jit, donate_argnums=0, in_shardings=(whole, rows), out_shardings=whole)
    def step(params: Params, batch: Any) -> Params:
        return descended(params, jax.grad(loss_of)(params, batch))

    params = jax.device_put(initial(), whole)
    for number in range(3):
        params = step(params, jax.device_put(batches()[number % 2], rows))
    return params


@program("jax", "callbacks that print")
def printed() -> Training:
    """debug.print and debug.callback compute nothing."""

    def loss(params: Params, batch: Any) -> Array:
        jax.debug.callback(lambda x: None, params[0][0])
        return loss_of(params, batch)

    return descent(loss, initial())
