"""MNIST in TensorFlow: two networks and their trainer.

Its counterparts are mnist_pytorch.py and mnist_jax.py: same functions, same names, same order.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from repro.machine import gpu
from repro.portable.definitions.ranks import SingleProcess
from repro.trainers.loop import layout
from repro.trainers.loop.config import Params
from repro.trainers.loop.data import MEAN, STD, Dataset
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.loop.recorder import OperationRecorder, in_order
from repro.trainers.native.tensorflow.layers import conv, max_pool
from repro.trainers.native.tensorflow.optimizers import optimizer
from repro.trainers.native.tensorflow.parts import joined_logits, joined_shares, mean_over_shares
from repro.trainers.native.tensorflow.ranks import join

# --- the networks ------------------------------------------------------------------------------------------------


class LeNet(keras.Model):
    """Two convolutions, each with pooling, and two dense layers; 21,840 parameters.

    `ops` is the arithmetic: Native, below, or repro.portable.tensorflow, with the same few operations.
    """

    def __init__(self, ops) -> None:
        super().__init__()
        self.ops = ops
        self.conv1 = layers.Conv2D(10, 5)
        self.conv2 = layers.Conv2D(20, 5)
        self.dense1 = layers.Dense(50)
        self.dense2 = layers.Dense(10)
        self.conv1.build((None, 28, 28, 1))
        self.conv2.build((None, 12, 12, 10))
        self.dense1.build((None, 320))
        self.dense2.build((None, 50))

    def call(self, images: tf.Tensor, keep: tf.Tensor | None) -> tf.Tensor:
        """Logits float32 [B, 10] of images uint8 [B, 28, 28].

        `keep` is uint8 [B, 20 + 50], 1 or 0 for each unit that dropout may drop, or None: no dropout.
        """
        ops = self.ops
        x = ops.inputs(images)
        x = tf.nn.relu(ops.max_pool(ops.conv(x, self.conv1.kernel, self.conv1.bias)))
        x = ops.conv(x, self.conv2.kernel, self.conv2.bias)
        if keep is not None:
            keep = tf.cast(keep, x.dtype) * 2
            x = x * keep[:, None, None, :20]  # whole channels
        x = tf.nn.relu(ops.max_pool(x))
        x = tf.reshape(x, (-1, 320))  # as height, width, channel
        x = tf.nn.relu(ops.dense(x, self.dense1.kernel, self.dense1.bias))
        if keep is not None:
            x = x * keep[:, 20:]
        return ops.dense(x, self.dense2.kernel, self.dense2.bias)


class ConvNet(keras.Model):
    """Two convolutions, one pooling, and two dense layers; 1,199,882 parameters. `ops` is as in LeNet."""

    def __init__(self, ops) -> None:
        super().__init__()
        self.ops = ops
        self.conv1 = layers.Conv2D(32, 3)
        self.conv2 = layers.Conv2D(64, 3)
        self.dense1 = layers.Dense(128)
        self.dense2 = layers.Dense(10)
        self.conv1.build((None, 28, 28, 1))
        self.conv2.build((None, 26, 26, 32))
        self.dense1.build((None, 9216))
        self.dense2.build((None, 128))

    def call(self, images: tf.Tensor, keep: tf.Tensor | None) -> tf.Tensor:
        """Computes logits as LeNet does, but `keep` is uint8 [B, 9216 + 128]."""
        ops = self.ops
        x = ops.inputs(images)
        x = tf.nn.relu(ops.conv(x, self.conv1.kernel, self.conv1.bias))
        x = tf.nn.relu(ops.conv(x, self.conv2.kernel, self.conv2.bias))
        x = tf.reshape(ops.max_pool(x), (-1, 9216))  # as height, width, channel
        if keep is not None:
            keep = tf.cast(keep, x.dtype)
            x = x * keep[:, :9216] * (4 / 3)
        x = tf.nn.relu(ops.dense(x, self.dense1.kernel, self.dense1.bias))
        if keep is not None:
            x = x * keep[:, 9216:] * 2
        return ops.dense(x, self.dense2.kernel, self.dense2.bias)


NETWORKS: dict[str, type[keras.Model]] = {"lenet": LeNet, "convnet": ConvNet}


class Native:
    """TensorFlow's own arithmetic, float32."""

    @staticmethod
    def inputs(images: tf.Tensor) -> tf.Tensor:
        return ((tf.cast(images, tf.float32) / 255 - MEAN) / STD)[..., None]

    @staticmethod
    def conv(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "VALID"), bias)

    @staticmethod
    def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(x @ kernel, bias)

    @staticmethod
    def max_pool(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.max_pool2d(x, 2, 2, "VALID")

    @staticmethod
    def mean_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    @staticmethod
    def total_loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    optimizer = staticmethod(optimizer)


class NativeOnCpu(Native):
    """TensorFlow's own arithmetic on a CPU, compiled by XLA."""

    conv = staticmethod(conv)
    max_pool = staticmethod(max_pool)


# --- the trainer --------------------------------------------------------------------------------------------------


class Trainer:
    """Trains a network in TensorFlow, with the data set on the device."""

    def __init__(self, params: Params, data: Dataset, rank_info: RankInfo | None = None) -> None:
        self.params, self.data = params, data
        set_determinism(params)
        self.ranks = join(rank_info, params)
        self.device = choose_device(params.device)
        self.train_images, self.train_labels = self._resident(data.train_images, data.train_labels)
        self.test_images, self.test_labels = self._resident(data.test_images, data.test_labels)
        with tf.device(self.device):
            self.ops = choose_ops(params, self.device)
            self.network = NETWORKS[params.model](self.ops)
            self.network.built = True  # each of its layers is
            weights = (w.value for w in self.network.trainable_weights)
            self.weights = dict(zip(layout.MODELS[params.model].weights, weights, strict=True))
            self.optimizer = self.ops.optimizer(params, self.weights)
        self.native = params.numerics != "portable"
        threads = params.threads if self.ops is NativeOnCpu else None
        self._shared_gradients = mean_over_shares(self._gradients, threads)
        self._shared_results = joined_shares(self._results, threads)
        self._shared_logits = joined_logits(self._logits, threads)
        self._compiled_step = tf.function(self._step, jit_compile=True)
        self.loader = WorkerLoader(data, params) if params.num_workers else None

    def steps(self, batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        """Trains on each batch in turn: indices int32 [S, B], bits uint8 [S, B, units] -> losses float32 [S]."""
        mine, ranks = self.ranks.share(batches.shape[1])
        images, labels, batches = self._source(batches[:, mine])
        with tf.device(self.device):
            arrays = (images, labels, tf.constant(batches), tf.constant(dropout_bits[:, mine]))
            return self._run(ranks, batches.shape[1], *arrays).numpy()

    @tf.function(reduce_retracing=True)
    def _run(
        self, ranks: SingleProcess, size: int, images: tf.Tensor, labels: tf.Tensor, batches: tf.Tensor, keep: tf.Tensor
    ) -> tf.Tensor:
        batches = tf.ensure_shape(batches, (None, size))  # known when traced: portable numerics depend on it
        # XLA joins the many small operations of a portable step, but knows no exchange between ranks.
        step = self._step if self.native or ranks.size > 1 else self._compiled_step
        losses = tf.TensorArray(tf.float32, tf.shape(batches)[0])
        for i in tf.range(tf.shape(batches)[0]):
            loss = step(ranks, tf.gather(images, batches[i]), tf.gather(labels, batches[i]), keep[i])
            losses = losses.write(i, tf.cast(loss, tf.float32))
        return losses.stack()

    def _step(self, ranks: SingleProcess, images: tf.Tensor, labels: tf.Tensor, keep: tf.Tensor) -> tf.Tensor:
        if not self.native:
            self.ops.Backend.ranks = ranks
        loss, gradients = self._shared_gradients(self._weights(), images, labels, keep)
        if self.native:  # portable operations have taken their sums over the ranks
            loss, gradients = ranks.mean(loss, gradients)
        self.optimizer.update(dict(zip(self.weights, gradients, strict=True)))
        return loss

    def _gradients(self, weights, images, labels, keep):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = self.ops.mean_loss(self._logits(weights, images, keep), labels)
        return loss, tape.gradient(loss, weights)

    def inspect(self, batch: np.ndarray, dropout_bits: np.ndarray) -> dict[str, np.ndarray]:
        """Computes results and gradients of a step on this batch, int32 [B] and uint8 [B, units]; updates nothing."""
        images, labels, batches = self._source(batch[None])
        with tf.device(self.device):
            arrays = tf.gather(images, batches[0]), tf.gather(labels, batches[0]), tf.constant(dropout_bits)
            forward, backward, gradients = self._shared_results(self._weights(), *arrays)
        results = (forward, backward, dict(zip(self.weights, gradients, strict=True)))
        return in_order(*({name: np.asarray(result) for name, result in part.items()} for part in results))

    def _results(self, weights, images, labels, keep):
        recorder = OperationRecorder(self.ops)
        self.network.ops = recorder
        try:
            with tf.GradientTape() as tape:
                tape.watch(weights)
                loss = recorder.mean_loss(self._logits(weights, images, keep), labels)
        finally:
            self.network.ops = self.ops
        results, gradients = tape.gradient(loss, (recorder.seen, weights))
        return recorder.seen, {name: part for name, part in results.items() if part is not None}, gradients

    def evaluate(self) -> tuple[float, int, int]:
        """The mean loss, correct and total over the whole test set."""
        loss, correct, size = 0.0, 0, self.params.batch_size_test
        with tf.device(self.device):
            for start in range(0, len(self.test_labels), size):
                part = slice(start, start + size)
                part_loss, part_correct = self._evaluate(self.test_images[part], self.test_labels[part])
                loss, correct = loss + float(part_loss), correct + int(part_correct)
        total = len(self.test_labels)
        return loss / total, correct, total

    @tf.function
    def _evaluate(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        logits = self._shared_logits(self._weights(), images)
        return self.ops.total_loss(logits, labels), tf.math.count_nonzero(tf.argmax(logits, 1, tf.int32) == labels)

    def state(self) -> dict[str, np.ndarray]:
        """Weights and optimizer slots, float32, in the layout of repro.trainers.loop.layout."""
        return {name: np.asarray(variable) for name, variable in (self.weights | self.optimizer.slots).items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes over weights and optimizer slots that state() returned, in any framework."""
        for name, variable in (self.weights | self.optimizer.slots).items():
            variable.assign(state[name])

    def facts(self) -> dict[str, object]:
        """Facts of this framework and its device, for experiment.json."""
        gpu = "GPU" in self.device
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0]) if gpu else {}
        build = tf.sysconfig.get_build_info()
        return {
            "framework": "TensorFlow",
            "version": tf.__version__,
            "device": "gpu" if gpu else "cpu",
            "device_name": details.get("device_name"),
            "multiprocessors": None,
            "engine": None if self.native else self.ops.Backend.engine,
            "threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "instruction_set": None,
            "cuda": build.get("cuda_version") if gpu else None,
            "cudnn": build.get("cudnn_version") if gpu else None,
        }

    def _weights(self) -> list[tf.Tensor]:
        # Read once a step: what works on a share, or looks into it, is then a function of weights, as in JAX.
        return [tf.identity(weight) for weight in self.weights.values()]

    def _logits(self, weights: list[tf.Tensor], images: tf.Tensor, keep: tf.Tensor | None) -> tf.Tensor:
        return self.network.stateless_call(weights, [], images, keep)[0]

    def _resident(self, images: np.ndarray, labels: np.ndarray) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device(self.device):
            return tf.constant(images), tf.constant(labels)

    def _source(self, batches: np.ndarray) -> tuple[tf.Tensor, tf.Tensor, np.ndarray]:
        """Images, labels and the batches as indices into them: the resident data set, or what the workers loaded."""
        if self.loader is None:
            return self.train_images, self.train_labels, batches
        images, labels = self.loader.load(batches)
        return *self._resident(images, labels), np.arange(batches.size, dtype=np.int32).reshape(batches.shape)


# --- what the trainer stands on -------------------------------------------------------------------------------------


def choose_device(wanted: str) -> str:
    """The device for `params.device`. UsageError for a GPU that is not there."""
    there, cuda = tf.config.list_physical_devices("GPU"), tf.sysconfig.get_build_info().get("cuda_version")
    return "/GPU:0" if gpu.choose(wanted, bool(there), "tensorflow", cuda) else "/CPU:0"


def set_determinism(params: Params) -> None:
    """Deterministic: an operation without a deterministic version is an error. Fast: whatever is fastest."""
    deterministic = params.numerics != "fast"
    tf.keras.utils.set_random_seed(params.seed % 2**32)
    tf.config.threading.set_intra_op_parallelism_threads(params.threads)
    tf.config.threading.set_inter_op_parallelism_threads(params.threads)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(not deterministic)


def choose_ops(params: Params, device: str):
    """The arithmetic for `params.numerics`; portable numerics are imported, and checked, only where they are used."""
    if params.numerics != "portable":
        return NativeOnCpu if "CPU" in device else Native
    from repro.portable.backends.checks import tensorflow as checks
    from repro.trainers.portable import tensorflow as operations

    checks.self_check(params.engine)
    return operations


class WorkerLoader:
    """Loads batches with tf.data, in the given order, by parallel workers."""

    def __init__(self, data: Dataset, params: Params) -> None:
        self.data, self.workers = data, params.num_workers

    def load(self, batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [S * B, 28, 28] and labels [S * B] of batches int32 [S, B]."""
        with tf.device("/CPU:0"):
            images, labels = tf.constant(self.data.train_images), tf.constant(self.data.train_labels)
            loader = tf.data.Dataset.from_tensor_slices(batches).map(
                lambda batch: (tf.gather(images, batch), tf.gather(labels, batch)),
                num_parallel_calls=self.workers,
                deterministic=True,
            )
            loaded_images, loaded_labels = zip(*loader.as_numpy_iterator(), strict=True)
        return np.concatenate(loaded_images), np.concatenate(loaded_labels)
