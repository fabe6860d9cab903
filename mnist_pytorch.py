"""MNIST in PyTorch: two networks and their trainer.

Its counterparts are mnist_tensorflow.py and mnist_jax.py: same functions, same names, same order.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from repro.machine import gpu
from repro.portable.definitions.ranks import SingleProcess
from repro.trainers.loop import layout
from repro.trainers.loop.config import Params
from repro.trainers.loop.data import MEAN, STD, Dataset
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.loop.recorder import OperationRecorder, in_order
from repro.trainers.native.pytorch.graph import Graphed
from repro.trainers.native.pytorch.layers import conv
from repro.trainers.native.pytorch.optimizers import optimizer
from repro.trainers.native.pytorch.ranks import join

# --- the networks ------------------------------------------------------------------------------------------------


class LeNet(nn.Module):
    """Two convolutions, each with pooling, and two dense layers; 21,840 parameters.

    `ops` is the arithmetic: Native, below, or repro.portable.pytorch, with the same few operations.
    """

    def __init__(self, ops) -> None:
        super().__init__()
        self.ops = ops
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.dense1 = nn.Linear(320, 50)
        self.dense2 = nn.Linear(50, 10)

    def forward(self, images: Tensor, keep: Tensor | None) -> Tensor:
        """Logits float32 [B, 10] of images uint8 [B, 28, 28].

        `keep` is uint8 [B, 20 + 50], 1 or 0 for each unit that dropout may drop, or None: no dropout.
        """
        ops = self.ops
        x = ops.inputs(images)
        x = functional.relu(ops.max_pool(ops.conv(x, self.conv1.weight, self.conv1.bias)))
        x = ops.conv(x, self.conv2.weight, self.conv2.bias)
        if keep is not None:
            keep = keep.to(x.dtype) * 2
            x = x * keep[:, :20, None, None]  # whole channels
        x = functional.relu(ops.max_pool(x))
        x = x.permute(0, 2, 3, 1).flatten(1)  # as height, width, channel
        x = functional.relu(ops.dense(x, self.dense1.weight, self.dense1.bias))
        if keep is not None:
            x = x * keep[:, 20:]
        return ops.dense(x, self.dense2.weight, self.dense2.bias)


class ConvNet(nn.Module):
    """Two convolutions, one pooling, and two dense layers; 1,199,882 parameters. `ops` is as in LeNet."""

    def __init__(self, ops) -> None:
        super().__init__()
        self.ops = ops
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dense1 = nn.Linear(9216, 128)
        self.dense2 = nn.Linear(128, 10)

    def forward(self, images: Tensor, keep: Tensor | None) -> Tensor:
        """Computes logits as LeNet does, but `keep` is uint8 [B, 9216 + 128]."""
        ops = self.ops
        x = ops.inputs(images)
        x = functional.relu(ops.conv(x, self.conv1.weight, self.conv1.bias))
        x = functional.relu(ops.conv(x, self.conv2.weight, self.conv2.bias))
        x = ops.max_pool(x).permute(0, 2, 3, 1).flatten(1)  # as height, width, channel
        if keep is not None:
            keep = keep.to(x.dtype)
            x = x * keep[:, :9216] * (4 / 3)
        x = functional.relu(ops.dense(x, self.dense1.weight, self.dense1.bias))
        if keep is not None:
            x = x * keep[:, 9216:] * 2
        return ops.dense(x, self.dense2.weight, self.dense2.bias)


NETWORKS: dict[str, type[nn.Module]] = {"lenet": LeNet, "convnet": ConvNet}


class Native:
    """PyTorch's own arithmetic, float32."""

    conv = staticmethod(conv)
    dense = staticmethod(functional.linear)

    @staticmethod
    def inputs(images: Tensor) -> Tensor:
        return ((images.float() / 255 - MEAN) / STD).unsqueeze(1)

    @staticmethod
    def max_pool(x: Tensor) -> Tensor:
        return functional.max_pool2d(x, 2)

    @staticmethod
    def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits, labels)

    @staticmethod
    def total_loss(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits, labels, reduction="sum")

    optimizer = staticmethod(optimizer)


# --- the trainer --------------------------------------------------------------------------------------------------


class Trainer:
    """Trains a network in PyTorch, with the data set on the device."""

    def __init__(self, params: Params, data: Dataset, rank_info: RankInfo | None = None) -> None:
        self.params, self.data = params, data
        set_determinism(params)
        self.ranks = join(rank_info, params)
        self.device = choose_device(params.device)
        self.train_images, self.train_labels = self._resident(data.train_images, data.train_labels)
        self.test_images, self.test_labels = self._resident(data.test_images, data.test_labels)
        self.ops = choose_ops(params, self.device)
        self.network = NETWORKS[params.model](self.ops).to(self.device, memory_format=torch.channels_last)
        self.weights = dict(zip(layout.MODELS[params.model].weights, self.network.parameters(), strict=True))
        self.optimizer = self.ops.optimizer(params, self.weights)
        recorded = self.device.type == "cuda" and rank_info is None
        self.graphed = Graphed(partial(self._step, self.ranks)) if recorded else None
        self.loader = WorkerLoader(data, params) if params.num_workers else None

    def steps(self, batches: np.ndarray, dropout_bits: np.ndarray) -> np.ndarray:
        """Trains on each batch in turn: indices int32 [S, B], bits uint8 [S, B, units] -> losses float32 [S]."""
        mine, ranks = self.ranks.share(batches.shape[1])
        images, labels, batches = self._source(batches[:, mine])
        indices = torch.from_numpy(batches).to(self.device)
        keep = torch.from_numpy(dropout_bits[:, mine]).to(self.device)
        step = self.graphed or partial(self._step, ranks)
        losses = [step(images[i], labels[i], bits) for i, bits in zip(indices, keep, strict=True)]
        return torch.stack(losses).float().cpu().numpy()

    def _step(self, ranks: SingleProcess, images: Tensor, labels: Tensor, keep: Tensor) -> Tensor:
        if self.ops is not Native:
            self.ops.Backend.ranks = ranks
        loss = self.ops.mean_loss(self.network(images, keep), labels)
        self.optimizer.zero_grad()
        loss.backward()
        loss = loss.detach()
        if self.ops is Native:  # portable operations have taken their sums over the ranks
            loss, _ = ranks.mean(loss, [weight.grad for weight in self.weights.values()])
        self.optimizer.step()
        return loss

    def inspect(self, batch: np.ndarray, dropout_bits: np.ndarray) -> dict[str, np.ndarray]:
        """Computes results and gradients of a step on this batch, int32 [B] and uint8 [B, units]; updates nothing."""
        images, labels, batches = self._source(batch[None])
        indices, keep = (torch.from_numpy(array).to(self.device) for array in (batches[0], dropout_bits))
        self.network.ops = recorder = OperationRecorder(self.ops)
        try:
            loss = recorder.mean_loss(self.network(images[indices], keep), labels[indices])
        finally:
            self.network.ops = self.ops
        results = {name: result for name, result in recorder.seen.items() if result.requires_grad}
        gradients = torch.autograd.grad(loss, [*self.weights.values(), *results.values()])
        return in_order(
            {name: from_batch(result) for name, result in recorder.seen.items()},
            {name: from_batch(part) for name, part in zip(results, gradients[len(self.weights) :], strict=True)},
            {name: to_layout(part) for name, part in zip(self.weights, gradients, strict=False)},
        )

    @torch.no_grad()
    def evaluate(self) -> tuple[float, int, int]:
        """The mean loss, correct and total over the whole test set."""
        loss, correct, size = 0.0, 0, self.params.batch_size_test
        for images, labels in zip(self.test_images.split(size), self.test_labels.split(size), strict=True):
            logits = self.network(images, None)
            loss += self.ops.total_loss(logits, labels).item()
            correct += int((logits.argmax(1) == labels).sum())
        total = len(self.test_labels)
        return loss / total, correct, total

    def state(self) -> dict[str, np.ndarray]:
        """Weights and optimizer slots, float32, in the layout of repro.trainers.loop.layout."""
        return {name: to_layout(tensor) for name, tensor in (self.weights | self.optimizer.slots).items()}

    @torch.no_grad()
    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Takes over weights and optimizer slots that state() returned, in any framework."""
        for name, tensor in (self.weights | self.optimizer.slots).items():
            tensor.copy_(from_layout(state[name]))

    def facts(self) -> dict[str, object]:
        """Facts of this framework and its device, for experiment.json."""
        gpu = self.device.type == "cuda"
        return {
            "framework": "PyTorch",
            "version": torch.__version__,
            "device": "gpu" if gpu else "cpu",
            "device_name": torch.cuda.get_device_name() if gpu else None,
            "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count if gpu else None,
            "engine": None if self.ops is Native else self.ops.Backend.engine,
            "threads": torch.get_num_threads(),
            "instruction_set": torch.backends.cpu.get_cpu_capability(),
            "cuda": torch.version.cuda if gpu else None,
            "cudnn": torch.backends.cudnn.version() if gpu else None,
        }

    def _resident(self, images: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(images).to(self.device), torch.from_numpy(labels).long().to(self.device)

    def _source(self, batches: np.ndarray) -> tuple[Tensor, Tensor, np.ndarray]:
        """Images, labels and the batches as indices into them: the resident data set, or what the workers loaded."""
        if self.loader is None:
            return self.train_images, self.train_labels, batches
        images, labels = self.loader.load(batches)
        return *self._resident(images, labels), np.arange(batches.size, dtype=np.int32).reshape(batches.shape)


# --- what the trainer stands on -------------------------------------------------------------------------------------


def choose_device(wanted: str) -> torch.device:
    """The device for `params.device`. UsageError for a GPU that is not there."""
    used = gpu.choose(wanted, torch.cuda.is_available(), "pytorch", torch.version.cuda)
    return torch.device("cuda" if used else "cpu")


def set_determinism(params: Params) -> None:
    """Deterministic: an operation without a deterministic version is an error. Fast: whatever is fastest."""
    deterministic = params.numerics != "fast"
    torch.manual_seed(params.seed)
    torch.set_num_threads(params.threads)
    # As torch.use_deterministic_algorithms, but that imports PyTorch's compiler, for as long as PyTorch itself takes.
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # no operation here reads it, and filling takes time
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.allow_tf32 = not deterministic
    torch.backends.cuda.matmul.allow_tf32 = not deterministic


def choose_ops(params: Params, device: torch.device):
    """The arithmetic for `params.numerics`; portable numerics are imported, and checked, only where they are used."""
    if params.numerics != "portable":
        return Native
    from repro.portable.backends.checks import pytorch as checks
    from repro.trainers.portable import pytorch as operations

    checks.self_check(device, params.engine)
    return operations


def to_layout(tensor: Tensor) -> np.ndarray:
    """PyTorch's [out, in, height, width] and [out, in] -> the common [height, width, in, out] and [in, out]."""
    axes = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,), 0: ()}[tensor.dim()]
    return np.array(tensor.detach().permute(axes).cpu().numpy(), order="C")


def from_layout(array: np.ndarray) -> Tensor:
    """The inverse of to_layout."""
    axes = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,), 0: ()}[array.ndim]
    return torch.from_numpy(np.asarray(array, order="C")).permute(axes)


def from_batch(tensor: Tensor) -> np.ndarray:
    """Results of an operation, for images [B, C, H, W] -> the common [B, H, W, C]."""
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).detach().cpu().numpy()


class WorkerLoader:
    """Loads batches with PyTorch's DataLoader over torchvision's data set, in the given order, in worker processes."""

    def __init__(self, data: Dataset, params: Params) -> None:
        from torchvision import datasets  # here, because it takes seconds to import and only workers need it

        kind = {"mnist": datasets.MNIST, "fashion_mnist": datasets.FashionMNIST}[data.name]
        self.batches: list[list[int]] = []
        self.loader = torch.utils.data.DataLoader(
            kind(str(data.folder), train=True, transform=np.array),
            batch_sampler=self,
            num_workers=params.num_workers,
            generator=torch.Generator().manual_seed(params.seed),
            persistent_workers=True,
        )

    def __iter__(self):
        return iter(self.batches)

    def load(self, batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [S * B, 28, 28] and labels [S * B] of batches int32 [S, B]."""
        self.batches = batches.tolist()
        images, labels = zip(*self.loader, strict=True)
        return torch.cat(images).numpy(), torch.cat(labels).numpy()
