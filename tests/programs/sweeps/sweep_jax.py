"""Trainings with several learning rates, one after another; with `--leak generator` the key goes on."""

import argparse

import jax
import jax.numpy as jnp
import optax

parser = argparse.ArgumentParser()
parser.add_argument("--rates", type=float, nargs="+", required=True)
parser.add_argument("--leak", choices=["generator"])
options = parser.parse_args()

inputs = jax.random.normal(jax.random.key(2), (64, 4))
targets = inputs.sum(1)


def train(rate: float, key: jax.Array) -> None:
    params = {"w": jax.random.normal(key, (4,)), "b": jnp.zeros(())}
    optimizer = optax.sgd(rate, momentum=0.9)
    state = optimizer.init(params)

    @jax.jit
    def step(params: dict, state: optax.OptState, x: jax.Array, y: jax.Array) -> tuple[dict, optax.OptState]:
        grads = jax.grad(lambda params: jnp.square(x @ params["w"] + params["b"] - y).mean())(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    for at in range(0, 64, 16):
        params, state = step(params, state, inputs[at : at + 16], targets[at : at + 16])
    jax.block_until_ready(params)


key = jax.random.key(0)
for rate in options.rates:
    key, own = jax.random.split(key if options.leak else jax.random.key(0))
    train(rate, own)
