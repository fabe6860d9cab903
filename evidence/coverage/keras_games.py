"""Networks of Keras that learn to act, after its examples: on states that were drawn before."""

from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from evidence.coverage.registry import program
from evidence.coverage.tensorflow_training import Training, integers, normal


@program("keras", "actor and critic")
def actor_critic() -> Training:
    """An episode step by step in eager code, with actions that are drawn."""
    given = keras.Input((4,))
    common = layers.Dense(16, activation="relu")(given)
    model = keras.Model(given, [layers.Dense(2, activation="softmax")(common), layers.Dense(1)(common)])
    optimizer, huber = keras.optimizers.Adam(0.01), keras.losses.Huber()

    def step(states: Any) -> Any:
        with tf.GradientTape() as tape:
            chosen, values, rewards = [], [], []
            for state in states:
                probabilities, value = model(state[None])
                action = int(tf.random.categorical(tf.math.log(probabilities), 1)[0, 0])
                chosen.append(tf.math.log(probabilities[0, action]))
                values.append(value[0, 0])
                rewards.append(float(state[action]))
            returns: list[float] = []
            later = 0.0
            for reward in reversed(rewards):
                later = reward + 0.99 * later
                returns.insert(0, later)
            wanted = tf.constant(returns)
            wanted = (wanted - tf.reduce_mean(wanted)) / (tf.math.reduce_std(wanted) + 1e-7)
            loss = -tf.reduce_sum(tf.stack(chosen) * (wanted - tf.stack(values)))
            loss += sum(huber(value[None], target[None]) for value, target in zip(values, wanted, strict=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return Training(step, (model, optimizer), [tf.constant(normal(6, 4, key=key)) for key in range(2)])


def _frames() -> keras.Model:
    """Of four frames: the value of each action."""
    return keras.Sequential(
        [
            keras.Input((20, 20, 4)),
            layers.Rescaling(1 / 255),
            layers.Conv2D(8, 8, 4, activation="relu"),
            layers.Conv2D(8, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(16, activation="relu"),
            layers.Dense(3),
        ]
    )


@program("keras", "deep q-learning")
def deep_q() -> Training:
    model, target = _frames(), _frames()
    target.set_weights(model.get_weights())
    optimizer, huber = keras.optimizers.Adam(2.5e-4, clipnorm=1.0), keras.losses.Huber()

    @tf.function(reduce_retracing=True)
    def step(batch: Any) -> Any:
        states, actions, rewards, following = batch
        best = rewards + 0.99 * tf.reduce_max(target(following), axis=1)
        with tf.GradientTape() as tape:
            result = tf.reduce_sum(model(states) * tf.one_hot(actions, 3), axis=1)
            loss = huber(best, result)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    batches = [
        (
            tf.constant(integers(256, 4, 20, 20, 4, key=key).astype("uint8")),
            tf.constant(integers(3, 4, key=key)),
            tf.constant(normal(4, key=key)),
            tf.constant(integers(256, 4, 20, 20, 4, key=key + 2).astype("uint8")),
        )
        for key in range(2)
    ]
    return Training(step, (model, target, optimizer), batches)


def _critic() -> keras.Model:
    state, action = keras.Input((3,)), keras.Input((1,))
    x = layers.Concatenate()([layers.Dense(8, activation="relu")(state), layers.Dense(8, activation="relu")(action)])
    return keras.Model([state, action], layers.Dense(1)(layers.Dense(16, activation="relu")(x)))


def _actor() -> keras.Model:
    last = keras.initializers.RandomUniform(-0.003, 0.003)
    given = keras.Input((3,))
    x = layers.Dense(16, activation="relu")(given)
    return keras.Model(given, 2.0 * layers.Dense(1, activation="tanh", kernel_initializer=last)(x))


@program("keras", "deep deterministic policy gradient")
def ddpg() -> Training:
    """With noise of Ornstein and Uhlenbeck, and targets that follow slowly."""
    actor, critic, targets = _actor(), _critic(), (_actor(), _critic())
    for model, target in zip((actor, critic), targets, strict=True):
        target.set_weights(model.get_weights())
    for_actor, for_critic = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(2e-3)
    noise = tf.Variable(0.0)

    @tf.function
    def step(batch: Any) -> Any:
        states, rewards, following = batch
        noise.assign(noise + 0.15 * (0.0 - noise) * 0.01 + 0.2 * 0.1 * tf.random.normal([]))
        actions = tf.clip_by_value(actor(states) + noise, -2.0, 2.0)
        with tf.GradientTape() as tape:
            wanted = rewards + 0.99 * targets[1]([following, targets[0](following)])
            loss = tf.reduce_mean(tf.square(wanted - critic([states, actions])))
        for_critic.apply(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables)
        with tf.GradientTape() as tape:
            value = -tf.reduce_mean(critic([states, actor(states)]))
        for_actor.apply(tape.gradient(value, actor.trainable_variables), actor.trainable_variables)
        return loss

    def followed(batch: Any) -> Any:
        loss = step(batch)
        for model, target in zip((actor, critic), targets, strict=True):
            target.set_weights(
                [0.005 * a + 0.995 * b for a, b in zip(model.get_weights(), target.get_weights(), strict=True)]
            )
        return loss

    batches = [
        tuple(map(tf.constant, (normal(8, 3, key=k), normal(8, 1, key=k), normal(8, 3, key=k + 2)))) for k in (0, 1)
    ]
    return Training(followed, (actor, critic, *targets, for_actor, for_critic, noise), batches)


@program("keras", "proximal policies")
def ppo() -> Training:
    """Logarithms of probabilities, ratios that are clipped."""
    actor = keras.Sequential([keras.Input((4,)), layers.Dense(16, activation="tanh"), layers.Dense(3)])
    optimizer = keras.optimizers.Adam(3e-3)

    @tf.function
    def step(batch: Any) -> Any:
        states, actions, advantages = batch
        before = tf.stop_gradient(_log_probability(actor(states), actions)) - 0.1
        with tf.GradientTape() as tape:
            ratio = ops.exp(_log_probability(actor(states), actions) - before)
            limit = tf.where(advantages > 0, 1.2 * advantages, 0.8 * advantages)
            loss = -tf.reduce_mean(tf.minimum(ratio * advantages, limit))
        optimizer.apply(tape.gradient(loss, actor.trainable_variables), actor.trainable_variables)
        return loss

    batches = [tuple(map(tf.constant, (normal(8, 4, key=k), integers(3, 8, key=k), normal(8, key=k)))) for k in (0, 1)]
    return Training(step, (actor, optimizer), batches)


def _log_probability(logits: Any, actions: Any) -> Any:
    return ops.sum(ops.one_hot(actions, 3) * ops.log_softmax(logits), 1)
