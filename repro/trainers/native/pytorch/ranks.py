"""Ranks of mnist_pytorch.py, and torchrun.

Ranks meet by torch.distributed: gloo on the CPU, NCCL on GPUs. Its counterparts are repro/trainers/native/tensorflow/ranks.py
and repro/trainers/native/jax/ranks.py.
"""

import logging
import os

import numpy as np
import torch
from torch import Tensor, distributed

from repro.portable.definitions.ranks import SINGLE_PROCESS, SingleProcess
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import ProcessGroup as Base
from repro.trainers.loop.ranks import RankInfo


def join(rank_info: RankInfo | None, params: Params) -> SingleProcess:
    """Meets the other ranks, where there are any."""
    if rank_info is None:
        return SINGLE_PROCESS
    gpu = params.device != "cpu" and torch.cuda.is_available()
    return ProcessGroup(rank_info, torch.device("cuda" if gpu else "cpu"))


class ProcessGroup(Base):
    """Ranks that reduce by torch.distributed."""

    def __init__(self, rank_info: RankInfo, device: torch.device) -> None:
        super().__init__(rank_info)
        self.device = device
        os.environ.update(rank_info.variables())
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", init_method="env://")

    def maximum(self, *parts: Tensor) -> list[Tensor]:
        return self._reduce(parts, distributed.ReduceOp.MAX)

    def total(self, *parts: Tensor) -> list[Tensor]:
        return self._reduce(parts, distributed.ReduceOp.SUM)

    def mean(self, loss: Tensor, gradients: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        loss, *totals = self.total(loss, *gradients)
        for gradient, total in zip(gradients, totals, strict=True):
            gradient.copy_(total).mul_(1 / self.size)  # in place, where the optimizer reads it
        return loss * (1 / self.size), gradients

    def gather(self, row: np.ndarray) -> np.ndarray:
        mine = torch.from_numpy(row.copy()).to(self.device)
        rows = [torch.empty_like(mine) for _ in range(self.size)]
        distributed.all_gather(rows, mine)
        return torch.stack(rows).cpu().numpy()

    def close(self) -> None:
        distributed.destroy_process_group()

    def _reduce(self, parts: tuple[Tensor, ...], operation) -> list[Tensor]:
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        distributed.all_reduce(flat, operation)
        pieces = flat.split([part.numel() for part in parts])
        return [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]


def torchrun(size: int, command: list[str], port: str | None) -> dict[int, int]:
    """The starter of PyTorch's ranks, as in repro.trainers.loop.launch."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    meet = ["--standalone"] if port is None else [f"--master-port={port}", "--master-addr=127.0.0.1"]
    own = ["--local-addr=127.0.0.1", f"--nproc-per-node={size}", "--monitor-interval=0.1", "--no-python"]
    os.environ["OMP_NUM_THREADS"] = "1"  # or torchrun says that it sets it; a rank's environment.apply() sets it anew
    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # it would report a failure in a page
    try:
        run.run(run.parse_args([*meet, *own, *command]))
    except ChildFailedError as error:
        return {rank: failure.exitcode for rank, failure in sorted(error.failures.items())}
    return {}
