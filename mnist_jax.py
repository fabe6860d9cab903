"""MNIST in JAX: two networks and their trainer.

Its counterparts are mnist_pytorch.py and mnist_tensorflow.py: same functions, same names, same order.
"""

import os
from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.traverse_util import unflatten_dict
from jax import Array, lax
from jax import numpy as jnp

from repro.machine import gpu
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.trainers.loop import layout
from repro.trainers.loop.config import Params
from repro.trainers.loop.data import MEAN, STD, Dataset
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.loop.recorder import OperationRecorder, in_order
from repro.trainers.native.jax.collectives import together
from repro.trainers.native.jax.layers import Layer, conv, max_pool
from repro.trainers.native.jax.optimizers import named, optimizer, placed
from repro.trainers.native.jax.parts import joined_parts, joined_shares, mean_over_parts
from repro.trainers.native.jax.ranks import join, run

# --- the networks ------------------------------------------------------------------------------------------------


class LeNet(nn.Module):
    """Two convolutions, each with pooling, and two dense layers; 21,840 parameters.

    `ops` is the arithmetic: Native, below, or repro.portable.jax, with the same few operations. Of images the batch is
    the last axis, [C, H, W, B].
    """

    ops: Any

    @nn.compact
    def __call__(self, images: Array, keep: Array | None) -> Array:
        """Logits float32 [B, 10] of images uint8 [B, 28, 28].

        `keep` is uint8 [B, 20 + 50], 1 or 0 for each unit that dropout may drop, or None: no dropout.
        """
        ops = self.ops
        x = ops.inputs(images)
        x = nn.relu(ops.max_pool(ops.conv(x, *Layer((5, 5, 1, 10), name="conv1")())))
        x = ops.conv(x, *Layer((5, 5, 10, 20), name="conv2")())
        if keep is not None:
            keep = keep.astype(x.dtype) * 2
            x = x * keep.T[:20, None, None]  # whole channels
        x = nn.relu(ops.max_pool(x))
        x = x.transpose(3, 1, 2, 0).reshape(-1, 320)  # as height, width, channel
        x = nn.relu(ops.dense(x, *Layer((320, 50), name="dense1")()))
        if keep is not None:
            x = x * keep[:, 20:]
        return ops.dense(x, *Layer((50, 10), name="dense2")())


class ConvNet(nn.Module):
    """Two convolutions, one pooling, and two dense layers; 1,199,882 parameters. `ops` is as in LeNet."""

    ops: Any

    @nn.compact
    def __call__(self, images: Array, keep: Array | None) -> Array:
        """Computes logits as LeNet does, but `keep` is uint8 [B, 9216 + 128]."""
        ops = self.ops
        x = ops.inputs(images)
        x = nn.relu(ops.conv(x, *Layer((3, 3, 1, 32), name="conv1")()))
        x = nn.relu(ops.conv(x, *Layer((3, 3, 32, 64), name="conv2")()))
        x = ops.max_pool(x).transpose(3, 1, 2, 0).reshape(-1, 9216)  # as height, width, channel
        if keep is not None:
            keep = keep.astype(x.dtype)
            x = x * keep[:, :9216] * (4 / 3)
        x = nn.relu(ops.dense(x, *Layer((9216, 128), name="dense1")()))
        if keep is not None:
            x = x * keep[:, 9216:] * 2
        return ops.dense(x, *Layer((128, 10), name="dense2")())


NETWORKS: dict[str, type[nn.Module]] = {"lenet": LeNet, "convnet": ConvNet}


class Native:
    """JAX's own arithmetic, float32."""

    conv = staticmethod(conv)
    max_pool = staticmethod(max_pool)

    @staticmethod
    def inputs(images: Array) -> Array:
        return ((images.astype(jnp.float32) / 255 - MEAN) / STD).transpose(1, 2, 0)[None]

    @staticmethod
    def dense(x: Array, kernel: Array, bias: Array) -> Array:
        return x @ kernel + bias

    @staticmethod
    def mean_loss(logits: Array, labels: Array) -> Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @staticmethod
    def total_loss(logits: Array, labels: Array) -> Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).sum()

    optimizer = staticmethod(optimizer)


# --- the trainer --------------------------------------------------------------------------------------------------


class Trainer:
    """Trains a network in JAX, with the data set on the device."""

    def __init__(self, params: Params, data: Dataset, rank_info: RankInfo | None = None) -> None:
        self.params, self.data = params, data
        set_determinism(params)
        self.ranks = join(rank_info, params)
        self.device = choose_device(params.device)
        self.train_images, self.train_labels = self._resident(data.train_images, data.train_labels)
        self.test_images, self.test_labels = self._resident(data.test_images, data.test_labels)
        self.ops = choose_ops(params)
        self.network = NETWORKS[params.model](self.ops)
        self.weights: dict[str, Array] = {}  # load_state() fills these two
        self.slots: optax.OptState = ()
        self.optimizer = self.ops.optimizer(params)
        self.longest_call = layout.steps_per_call(params.model, params.batch_size_train)
        self.loader = WorkerLoader(data, params) if params.num_workers else None

    def steps(self, batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        """Trains on each batch in turn: indices int32 [S, B], bits uint8 [S, B, units] -> losses float32 [S]."""
        mine, ranks = self.ranks.share(batches.shape[1])
        images, labels, batches = self._source(batches[:, mine])
        count = len(batches)
        missing = [(0, self.longest_call - count), (0, 0), (0, 0)]  # so that one compiled loop serves all calls
        batches, keep = np.pad(batches, missing[:2]), np.pad(dropout_bits[:, mine], missing)
        self.weights, self.slots, losses = run(
            ranks, self._run, (self.weights, self.slots, images, labels, count), (batches, keep)
        )
        return np.asarray(losses)[:count]

    @partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2, 3))
    def _run(self, ranks, weights, slots, images, labels, count, batches, keep):
        def body(i, carry):
            weights, slots, losses = carry
            weights, slots, loss = self._step(ranks, weights, slots, images[batches[i]], labels[batches[i]], keep[i])
            return weights, slots, losses.at[i].set(loss.astype(jnp.float32))

        return lax.fori_loop(0, count, body, (weights, slots, jnp.zeros(len(batches), jnp.float32)))

    def _step(self, ranks, weights, slots, images, labels, keep):
        def mean_loss(weights, images, labels, keep):
            return self.ops.mean_loss(self._logits(weights, images, keep), labels)

        gradients_of = mean_over_parts(jax.value_and_grad(mean_loss), self._part(len(images)))
        if self.ops is not Native:
            self.ops.Backend.ranks = ranks
            gradients_of = together(ranks, gradients_of)
        loss, gradients = gradients_of(weights, images, labels, keep)
        if self.ops is Native:  # portable operations have taken their sums over the ranks
            loss, gradients = ranks.mean(loss, gradients)
        return *self.optimizer.update(weights, slots, gradients), loss

    def inspect(self, batch: np.ndarray, dropout_bits: np.ndarray) -> dict[str, np.ndarray]:
        """Computes results and gradients of a step on this batch, int32 [B] and uint8 [B, units]; updates nothing."""
        images, labels, batches = self._source(batch[None])
        results = self._inspect(self.weights, images[batches[0]], labels[batches[0]], dropout_bits)
        return in_order(*({name: np.asarray(result) for name, result in part.items()} for part in results))

    @partial(jax.jit, static_argnums=0)
    def _inspect(self, weights, images, labels, keep):
        if self.ops is not Native:
            self.ops.Backend.ranks = SINGLE_PROCESS

        def mean_loss(weights, taps, images, labels, keep):
            recorder = OperationRecorder(self.ops, taps)
            network = NETWORKS[self.params.model](recorder)
            logits = network.apply({"params": unflatten_dict(weights, sep=".")}, images, keep)
            return recorder.mean_loss(logits, labels), recorder.seen

        def results(weights, *part):
            _, shapes = jax.eval_shape(mean_loss, weights, None, *part)
            taps = jax.tree.map(lambda result: jnp.zeros(result.shape, result.dtype), shapes)
            (gradients, backward), forward = jax.grad(mean_loss, (0, 1), has_aux=True)(weights, taps, *part)
            return jax.tree.map(from_batch, forward), jax.tree.map(from_batch, backward), gradients

        _, ranks = self.ranks.share(len(images))  # who work side by side in a step; here, one after another
        count = ranks.size if self.ops is Native else 1
        results_of = joined_shares(joined_parts(results, self._part(len(images) // count)), count)
        return results_of(weights, images, labels, keep)

    def evaluate(self) -> tuple[float, int, int]:
        """The mean loss, correct and total over the whole test set."""
        loss, correct, size = 0.0, 0, layout.part_of(self.params.batch_size_test, 64)
        for start in range(0, len(self.test_labels), size):
            part = slice(start, start + size)
            part_loss, part_correct = self._evaluate(self.weights, self.test_images[part], self.test_labels[part])
            loss, correct = loss + float(part_loss), correct + int(part_correct)
        total = len(self.test_labels)
        return loss / total, correct, total

    @partial(jax.jit, static_argnums=0)
    def _evaluate(self, weights, images, labels):
        logits = self._logits(weights, images, None)
        return self.ops.total_loss(logits, labels), (logits.argmax(1) == labels).sum()

    def state(self) -> dict[str, np.ndarray]:
        """Weights and optimizer slots, float32, in the layout of repro.trainers.loop.layout."""
        weights = {name: np.array(array) for name, array in self.weights.items()}
        return weights | named(self.params.optimizer, self.slots)

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes over weights and optimizer slots that state() returned, in any framework."""
        slots = placed(self.params.optimizer, self.optimizer.init, state)
        self.weights, self.slots = jax.device_put((layout.weights_of(state), slots), self.device)

    def facts(self) -> dict[str, object]:
        """Facts of this framework and its device, for experiment.json."""
        gpu = self.device.platform == "gpu"
        return {
            "framework": "JAX",
            "version": jax.__version__,
            "device": "gpu" if gpu else "cpu",
            "device_name": self.device.device_kind if gpu else None,
            "multiprocessors": self.device.core_count if gpu else None,
            "engine": None if self.ops is Native else self.ops.Backend.engine,
            "threads": int(os.environ["PJRT_NPROC"]),
            "instruction_set": None,
            "cuda": self.device.client.platform_version if gpu else None,
            "cudnn": None,
        }

    def _logits(self, weights: dict[str, Array], images: Array, keep: Array | None) -> Array:
        return self.network.apply({"params": unflatten_dict(weights, sep=".")}, images, keep)

    def _part(self, size: int) -> int | None:
        """The number of images to work on at a time; None: all, as GPUs and portable numerics do."""
        part = layout.part_of(size)
        return part if part < size and self.ops is Native and self.device.platform == "cpu" else None

    def _resident(self, images: np.ndarray, labels: np.ndarray) -> tuple[Array, Array]:
        return jax.device_put(images, self.device), jax.device_put(labels, self.device)

    def _source(self, batches: np.ndarray) -> tuple[Array, Array, np.ndarray]:
        """Images, labels and the batches as indices into them: the resident data set, or what the workers loaded."""
        if self.loader is None:
            return self.train_images, self.train_labels, batches
        images, labels = self.loader.load(batches)
        return *self._resident(images, labels), np.arange(batches.size, dtype=np.int32).reshape(batches.shape)


# --- what the trainer stands on -------------------------------------------------------------------------------------


def choose_device(wanted: str) -> jax.Device:
    """The device for `params.device`. UsageError for a GPU that is not there."""
    try:
        there = jax.local_devices(backend="gpu") if wanted != "cpu" else []
    except RuntimeError:
        there = []
    cuda = next((version for version in ("13", "12") if find_spec(f"jax_cuda{version}_plugin")), None)
    used = gpu.choose(wanted, bool(there), "jax", cuda)
    return there[0] if used else jax.local_devices(backend="cpu")[0]


def set_determinism(params: Params) -> None:
    """Deterministic: full float32 products, with the XLA flags of repro.trainers.loop.environment. Fast: whatever is fastest."""
    deterministic = params.numerics != "fast"
    jax.config.update("jax_enable_x64", params.numerics == "portable")
    jax.config.update("jax_default_matmul_precision", "highest" if deterministic else "default")


def choose_ops(params: Params):
    """The arithmetic for `params.numerics`; portable numerics are imported, and checked, only where they are used."""
    if params.numerics != "portable":
        return Native
    from repro.portable.backends.checks import jax as checks
    from repro.trainers.portable import jax as operations

    checks.self_check(params.engine)
    return operations


def from_batch(array: Array) -> Array:
    """Results of an operation, for images [C, H, W, B] -> the common [B, H, W, C]."""
    return array.transpose(3, 1, 2, 0) if array.ndim == 4 else array


class WorkerLoader:
    """Loads batches with Grain, in the given order, by parallel workers (threads)."""

    def __init__(self, data: Dataset, params: Params) -> None:
        import grain  # here, because it takes long to import and only workers need it

        images, labels = data.train_images, data.train_labels
        self.options = grain.ReadOptions(num_threads=params.num_workers)
        self.source = grain.MapDataset
        self.read = lambda batch: (images[batch], labels[batch])

    def load(self, batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [S * B, 28, 28] and labels [S * B] of batches int32 [S, B]."""
        loader = self.source.source(batches).map(self.read).to_iter_dataset(self.options)
        images, labels = zip(*loader, strict=True)
        return np.concatenate(images), np.concatenate(labels)
