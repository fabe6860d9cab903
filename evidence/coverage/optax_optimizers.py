"""Each optimizer of Optax, and what goes with them: transformations of gradients, schedules, losses."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import optax
from jax import Array, nn
from jax import numpy as jnp
from optax import contrib

from evidence.coverage.jax_training import Training, integers, normal
from evidence.coverage.registry import program

Params = dict[str, Array]
BATCHES = [(normal(16, 8, key=key), integers(4, 16, key=key)) for key in range(2)]


def initial() -> Params:
    """Two dense layers, with 8 inputs and 4 classes."""
    keys = jax.random.split(jax.random.key(0))
    weights = nn.initializers.lecun_normal()
    return {
        "hidden": weights(keys[0], (8, 16)),
        "bias": jnp.zeros(16),
        "out": weights(keys[1], (16, 4)),
    }


def logits_of(params: Params, x: Array) -> Array:
    return nn.gelu(x @ params["hidden"] + params["bias"]) @ params["out"]


def loss_of(params: Params, batch: Any) -> Array:
    x, y = batch
    return optax.softmax_cross_entropy_with_integer_labels(logits_of(params, x), y).mean()


ASKS = {
    "lbfgs": ("value", "grad", "value_fn"),
    "lbfgs, backtracking": ("value", "grad", "value_fn"),
    "contrib.sam": ("grad_fn",),
    "contrib.sophia": ("obj_fn",),
}
"""What an optimizer's update takes, of others but the value of the loss."""


def training(
    optimizer: optax.GradientTransformation,
    asks: tuple[str, ...] = ("value",),
    params: Params | None = None,
    loss: Any = loss_of,
) -> Training:
    """With what the optimizer asks for."""
    optimizer = optax.with_extra_args_support(optimizer)
    params = initial() if params is None else params

    def step(state: Any, batch: Any) -> Any:
        params, slots = state
        value, gradients = jax.value_and_grad(loss)(params, batch)
        value_fn = partial(loss, batch=batch)
        known = {
            "value": value,
            "grad": gradients,
            "value_fn": value_fn,
            "obj_fn": value_fn,
            "grad_fn": lambda params, _: jax.grad(loss)(params, batch),
        }
        updates, slots = optimizer.update(gradients, slots, params, **{name: known[name] for name in asks})
        return (optax.apply_updates(params, updates), slots), value

    return Training((params, optimizer.init(params)), step, BATCHES)


OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "adabelief": lambda: optax.adabelief(1e-2),
    "adadelta": lambda: optax.adadelta(1.0),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
    "adagrad": lambda: optax.adagrad(0.1),
    "adam": lambda: optax.adam(1e-2, nesterov=False),
    "adamax": lambda: optax.adamax(1e-2),
    "adamaxw": lambda: optax.adamaxw(1e-2),
    "adamw": lambda: optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 8), b2=0.95),
    "adan": lambda: optax.adan(1e-2),
    "amsgrad": lambda: optax.amsgrad(1e-2),
    "fromage": lambda: optax.fromage(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "lars": lambda: optax.lars(0.1),
    "lbfgs": lambda: optax.lbfgs(),
    "lbfgs, backtracking": lambda: optax.lbfgs(linesearch=optax.scale_by_backtracking_linesearch(8)),
    "lion": lambda: optax.lion(1e-3),
    "nadam": lambda: optax.nadam(1e-2),
    "nadamw": lambda: optax.nadamw(1e-2),
    "noisy_sgd": lambda: optax.noisy_sgd(0.1, key=jax.random.key(1)),
    "novograd": lambda: optax.novograd(1e-2),
    "optimistic_adam_v2": lambda: optax.optimistic_adam_v2(1e-2),
    "optimistic_gradient_descent": lambda: optax.optimistic_gradient_descent(0.1),
    "polyak_sgd": lambda: optax.polyak_sgd(1.0),
    "radam": lambda: optax.radam(1e-2, b2=0.9),
    "rmsprop": lambda: optax.rmsprop(1e-2, centered=True, momentum=0.9),
    "rprop": lambda: optax.rprop(1e-2),
    "sgd": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "sign_sgd": lambda: optax.sign_sgd(1e-2),
    "signum": lambda: optax.signum(1e-2),
    "sm3": lambda: optax.sm3(0.1),
    "yogi": lambda: optax.yogi(1e-2),
    "contrib.acprop": lambda: contrib.acprop(1e-2),
    "contrib.ademamix": lambda: contrib.ademamix(1e-2),
    "contrib.adopt": lambda: contrib.adopt(1e-2),
    "contrib.cocob": lambda: contrib.cocob(),
    "contrib.dadapt_adamw": lambda: contrib.dadapt_adamw(),
    "contrib.dog": lambda: contrib.dog(1.0),
    "contrib.dowg": lambda: contrib.dowg(1.0),
    "contrib.galore": lambda: contrib.galore(1e-2, rank=2),
    "contrib.madgrad": lambda: contrib.madgrad(1e-2),
    "contrib.mechanize": lambda: contrib.mechanize(optax.adamw(1e-2)),
    "contrib.momo": lambda: contrib.momo(),
    "contrib.momo_adam": lambda: contrib.momo_adam(),
    "contrib.muon": lambda: contrib.muon(1e-2),
    "contrib.prodigy": lambda: contrib.prodigy(),
    "contrib.reduce_on_plateau": lambda: optax.chain(
        optax.adam(1e-2), contrib.reduce_on_plateau(patience=1, accumulation_size=2)
    ),
    "contrib.sam": lambda: contrib.sam(
        optax.sgd(0.1), optax.chain(contrib.normalize(), optax.sgd(0.05)), 2, opaque_mode=True
    ),
    "contrib.schedule_free": lambda: contrib.schedule_free(optax.sgd(0.1), 0.1),
    "contrib.schedule_free_adamw": lambda: contrib.schedule_free_adamw(1e-2, warmup_steps=2),
    "contrib.simplified_ademamix": lambda: contrib.simplified_ademamix(1e-3),
    "contrib.sophia": lambda: contrib.sophia(1e-2),
    "MultiSteps": lambda: optax.MultiSteps(optax.adam(1e-2), 2).gradient_transformation(),
    "adaptive_grad_clip, centralize": lambda: optax.chain(
        optax.adaptive_grad_clip(0.01),
        optax.centralize(),
        optax.add_noise(0.1, 0.55, key=jax.random.key(2)),
        optax.sgd(0.1),
    ),
    "apply_if_finite, zero_nans, clip_by_global_norm, ema": lambda: optax.apply_if_finite(
        optax.chain(optax.zero_nans(), optax.clip_by_global_norm(0.1), optax.ema(0.9), optax.scale(-0.1)), 2
    ),
    "clip_by_block_rms, scale_by_stddev, scale_by_param_block_rms": lambda: optax.chain(
        optax.clip_by_block_rms(0.1), optax.scale_by_stddev(), optax.scale_by_param_block_rms(), optax.sgd(0.1)
    ),
    "inject_hyperparams": lambda: optax.inject_hyperparams(optax.adamw)(
        learning_rate=optax.exponential_decay(1e-2, 2, 0.7), weight_decay=optax.linear_schedule(0.0, 0.1, 4)
    ),
    "partition": lambda: optax.partition(
        {"matrix": optax.adam(1e-2), "vector": optax.sgd(0.1)}, {"hidden": "matrix", "bias": "vector", "out": "matrix"}
    ),
}
"""By name: a function without arguments, called under the mode or not."""

for _name, _made in OPTIMIZERS.items():
    program("optax", _name)(lambda made=_made, name=_name: training(made(), ASKS.get(name, ("value",))))  # type: ignore[misc]


@program("optax", "contrib.dpsgd")
def private() -> Training:
    """Gradients of each example, clipped, with noise."""
    optimizer = contrib.dpsgd(0.1, l2_norm_clip=1.0, noise_multiplier=1.1, seed=3)
    params = initial()
    each = jax.vmap(jax.value_and_grad(loss_of), (None, 0))

    def step(state: Any, batch: Any) -> Any:
        params, slots = state
        values, gradients = each(params, jax.tree.map(lambda x: x[:, None], batch))
        updates, slots = optimizer.update(gradients, slots, params)
        return (optax.apply_updates(params, updates), slots), values.mean()

    return Training((params, optimizer.init(params)), step, BATCHES)


@program("optax", "lookahead")
def lookahead() -> Training:
    optimizer = optax.lookahead(optax.sgd(0.1), 2, 0.5)
    params = optax.LookaheadParams.init_synced(initial())

    def step(state: Any, batch: Any) -> Any:
        params, slots = state
        value, gradients = jax.value_and_grad(loss_of)(params.fast, batch)
        updates, slots = optimizer.update(gradients, slots, params)
        return (optax.apply_updates(params, updates), slots), value

    return Training((params, optimizer.init(params)), step, BATCHES)


@program("optax", "schedules")
def schedules() -> dict[str, Array]:
    """The rates of 20 steps."""
    made = {
        "constant": optax.constant_schedule(0.1),
        "cosine": optax.cosine_decay_schedule(0.1, 15, 0.01, 1.5),
        "one cycle, cosine": optax.cosine_onecycle_schedule(20, 0.1),
        "one cycle, linear": optax.linear_onecycle_schedule(20, 0.1),
        "exponential": optax.exponential_decay(0.1, 3, 0.9),
        "piecewise": optax.piecewise_constant_schedule(0.1, {5: 0.3, 10: 0.3}),
        "piecewise, interpolated": optax.piecewise_interpolate_schedule("cosine", 0.1, {5: 0.3, 10: 0.3}),
        "polynomial": optax.polynomial_schedule(0.1, 0.001, 1.7, 15),
        "restarts": optax.sgdr_schedule(
            [{"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 2, "decay_steps": 8, "end_value": 0.01}] * 2
        ),
        "warm-up, cosine": optax.warmup_cosine_decay_schedule(0.0, 0.1, 4, 18),
        "warm-up, exponential": optax.warmup_exponential_decay_schedule(0.0, 0.1, 4, 3, 0.8),
    }
    return {name: jax.jit(jax.vmap(schedule))(jnp.arange(20)) for name, schedule in made.items()}


@program("optax", "losses")
def losses() -> dict[str, Any]:
    """Values and gradients of all of Optax's losses."""
    x, y = jnp.asarray(normal(6, 8, key=4)), jnp.asarray(normal(6, 8, key=5))
    labels = jnp.asarray(integers(8, 6))
    shares, signs = nn.softmax(y), jnp.sign(y)
    functions: dict[str, Callable[[Array], Array]] = {
        "squared": lambda x: optax.squared_error(x, y),
        "l2": lambda x: optax.l2_loss(x, y),
        "huber": lambda x: optax.huber_loss(x, y),
        "log cosh": lambda x: optax.log_cosh(x, y),
        "cosine": lambda x: optax.cosine_distance(x, y, epsilon=1e-6),
        "hinge": lambda x: optax.hinge_loss(x, signs),
        "cross-entropy": lambda x: optax.softmax_cross_entropy(x, optax.smooth_labels(nn.one_hot(labels, 8), 0.1)),
        "cross-entropy, safe": lambda x: optax.safe_softmax_cross_entropy(x, shares),
        "poly": lambda x: optax.losses.poly_loss_cross_entropy(x, shares),
        "sigmoid": lambda x: optax.sigmoid_binary_cross_entropy(x, shares),
        "focal": lambda x: optax.sigmoid_focal_loss(x, shares, alpha=0.25),
        "divergence": lambda x: optax.kl_divergence(nn.log_softmax(x), shares),
        "divergence, convex": lambda x: optax.convex_kl_divergence(nn.log_softmax(x), shares),
        "dice": lambda x: optax.losses.dice_loss(x[None], nn.one_hot(labels, 8)[None]),
        "contrastive": lambda x: optax.ntxent(x, labels % 3),
        "triplets": lambda x: optax.losses.triplet_margin_loss(x, y, shares),
        "ranks": lambda x: optax.losses.ranking_softmax_loss(x, shares),
        "sparsemax": lambda x: optax.losses.multiclass_sparsemax_loss(x, labels),
        "perceptron": lambda x: optax.losses.multiclass_perceptron_loss(x, labels),
        "fenchel-young": lambda x: optax.losses.make_fenchel_young_loss(jax.nn.logsumexp)(x, shares),
    }

    @jax.jit
    def all_of_them(x: Array) -> Any:
        return {name: jax.value_and_grad(lambda x, f=f: f(x).sum())(x) for name, f in functions.items()}

    return all_of_them(x)


@program("optax", "ctc_loss")
def ctc() -> Training:
    """Frames of speech, by an affine function."""
    batches = [(normal(2, 12, 8, key=key), integers(5, 2, 4, key=key) + 1) for key in range(2)]
    params = {"hidden": jnp.zeros((8, 6))}

    def loss(params: Params, batch: Any) -> Array:
        frames, labels = batch
        none = jnp.zeros(frames.shape[:2]), jnp.zeros(labels.shape)
        return optax.ctc_loss(frames @ params["hidden"], none[0], labels, none[1]).mean()

    made = training(optax.adam(1e-2), params=params, loss=loss)
    made.batches = batches
    return made


@program("optax", "projections, assignment")
def projections() -> dict[str, Any]:
    """What constrained optimization needs."""
    x = jnp.asarray(normal(6, 6, key=6))

    @jax.jit
    def computed(x: Array) -> Any:
        return {
            "simplex": optax.projections.projection_simplex(x[0]),
            "l1 ball": optax.projections.projection_l1_ball(x[0], 0.5),
            "l2 ball": optax.projections.projection_l2_ball(x[0], 0.5),
            "linf ball": optax.projections.projection_linf_ball(x[0], 0.5),
            "assignment": optax.assignment.hungarian_algorithm(x),
        }

    return computed(x)
