"""Ranks of mnist_tensorflow.py.

Ranks meet by the collectives of MultiWorkerMirroredStrategy: ring on the CPU, NCCL on GPUs. Its counterparts are
repro/trainers/native/pytorch/ranks.py and repro/trainers/native/jax/ranks.py.
"""

import itertools

import numpy as np
import tensorflow as tf

from repro.portable.definitions.ranks import SINGLE_PROCESS, SingleProcess
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import ProcessGroup as Base
from repro.trainers.loop.ranks import RankInfo

GROUP = 1000  # any number that no other group of this process has


def join(rank_info: RankInfo | None, params: Params) -> SingleProcess:
    """Meets the other ranks, where there are any."""
    if rank_info is None:
        return SINGLE_PROCESS
    gpu = params.device != "cpu" and tf.config.list_physical_devices("GPU")
    return ProcessGroup(rank_info, "GPU" if gpu else "CPU")


class ProcessGroup(Base):
    """Ranks that reduce by TensorFlow's collective operations.

    The strategy starts the servers and meets the others. Its own all-reduce knows no maximum, so the operations below
    it are called here. Ranks trace the same functions in the same order, so an operation has the same key on all.
    """

    def __init__(self, rank_info: RankInfo, kind: str) -> None:
        super().__init__(rank_info)
        workers = [f"{rank_info.host(rank)}:{rank_info.port + rank}" for rank in range(rank_info.size)]
        cluster = tf.train.ClusterSpec({"worker": workers})
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster,
            task_type="worker",
            task_id=rank_info.rank,
            num_accelerators={"GPU": 1} if kind == "GPU" else {},
            rpc_layer="grpc",
        )
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        self.hint = "nccl" if kind == "GPU" else "ring"
        self.keys = itertools.count(GROUP)

    def maximum(self, *parts: tf.Tensor) -> list[tf.Tensor]:
        return self._reduce(parts, "Max")

    def total(self, *parts: tf.Tensor) -> list[tf.Tensor]:
        return self._reduce(parts, "Add")

    def mean(self, loss: tf.Tensor, gradients: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        loss, *gradients = [total * (1 / self.size) for total in self.total(loss, *gradients)]
        return loss, gradients

    def gather(self, row: np.ndarray) -> np.ndarray:
        rows = np.zeros((self.size, len(row)), np.float32)
        rows[self.rank] = row
        return self.total(tf.constant(rows))[0].numpy().astype(np.uint8)

    def _reduce(self, parts: tuple[tf.Tensor, ...], operation: str) -> list[tf.Tensor]:
        flat = tf.concat([tf.reshape(part, (-1,)) for part in parts], 0)
        reduced = tf.raw_ops.CollectiveReduceV2(
            input=flat,
            group_size=self.size,
            group_key=GROUP,
            instance_key=next(self.keys),
            ordering_token=[],
            merge_op=operation,
            final_op="Id",
            communication_hint=self.hint,
        )
        pieces = tf.split(reduced, [part.shape.num_elements() for part in parts])
        return [tf.reshape(piece, part.shape) for piece, part in zip(pieces, parts, strict=True)]
