"""Ranks of mnist_jax.py, and threads that share a batch.

Ranks meet by jax.distributed: gloo on the CPU, NCCL on GPUs. Its counterparts are repro/trainers/native/pytorch/ranks.py and
repro/trainers/native/tensorflow/ranks.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import jax
import numpy as np
from jax import Array, lax
from jax import numpy as jnp
from jax._src.lib import _jax  # there is no public way to say where gloo listens
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from repro.portable.definitions.ranks import AXIS, SINGLE_PROCESS, SingleProcess
from repro.trainers.loop import layout
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import LOOPBACK, RankInfo
from repro.trainers.loop.ranks import ProcessGroup as Base

WHOLE, DIVIDED = PartitionSpec(), PartitionSpec(None, AXIS)
SECONDS = 20  # without a sign of life from a rank, until the others give up


def join(rank_info: RankInfo | None, params: Params) -> SingleProcess:
    """Meets the other ranks, or makes each thread a device. To be called before JAX looks for devices."""
    if rank_info is None:
        if jax.config.jax_num_cpu_devices != params.threads:  # JAX refuses any change once it has looked
            jax.config.update("jax_num_cpu_devices", params.threads)
        return ThreadedProcess()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if rank_info.hosts == (LOOPBACK,):  # JAX would look up the machine's name, unknown in a container without a network
        _jax.make_gloo_tcp_collectives = partial(_jax.make_gloo_tcp_collectives, hostname=LOOPBACK)
    jax.config.update("jax_enable_preemption_service", False)  # a run that is ended resumes from its checkpoint
    jax.distributed.initialize(
        f"{rank_info.host(0)}:{rank_info.port}",
        rank_info.size,
        rank_info.rank,
        local_device_ids=[0],
        heartbeat_timeout_seconds=SECONDS,
    )
    ranks = ProcessGroup(rank_info, params)
    ranks.gather(np.zeros(1, np.uint8))  # the first exchange connects them
    return ranks


class DeviceGroup(SingleProcess):
    """Devices that share a batch and reduce by XLA's collectives, in the functions that run() calls."""

    mesh: Mesh

    def maximum(self, *parts: Array) -> list[Array]:
        return self._reduce(parts, lax.pmax)

    def total(self, *parts: Array) -> list[Array]:
        return self._reduce(parts, lax.psum)

    def mean(self, loss: Array, gradients: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        loss, *totals = [total * (1 / self.size) for total in self.total(loss, *gradients.values())]
        return loss, dict(zip(gradients, totals, strict=True))

    def _reduce(self, parts: tuple[Array, ...], operation: Callable) -> list[Array]:
        flat = operation(jnp.concatenate([part.reshape(-1) for part in parts]), AXIS)  # or each would travel alone
        pieces = jnp.split(flat, np.cumsum([part.size for part in parts])[:-1])
        return [piece.reshape(part.shape) for piece, part in zip(pieces, parts, strict=True)]


@dataclass(frozen=True)
class ThreadGroup(DeviceGroup):
    """Threads of one process, each a device of JAX' own on the CPU.

    They wait for one another once a step, with portable numerics twice. Threads that share an operation wait for one another in each.
    """

    size: int

    @property
    def mesh(self) -> Mesh:
        return Mesh(np.array(jax.local_devices(backend="cpu")[: self.size]), (AXIS,))


class ThreadedProcess(SingleProcess):
    """A process whose threads share each batch on a CPU."""

    def share(self, batch: int) -> tuple[slice, SingleProcess]:
        """The whole batch, and the threads that share it: as many as cut it into equal parts, none too small."""
        devices = len(jax.devices()) if jax.default_backend() == "cpu" else 1
        count = layout.shares_of(batch, devices)
        return slice(None), ThreadGroup(count) if count > 1 else SINGLE_PROCESS


class ProcessGroup(DeviceGroup, Base):
    """Processes with a device each."""

    def __init__(self, rank_info: RankInfo, params: Params) -> None:
        super().__init__(rank_info)
        devices = jax.devices("cpu") if params.device == "cpu" else jax.devices()
        self.mesh = Mesh(np.array(devices), (AXIS,))

    def gather(self, row: np.ndarray) -> np.ndarray:
        return np.asarray(multihost_utils.process_allgather(row)).reshape(self.size, -1)

    def close(self) -> None:
        jax.distributed.shutdown()


def run(ranks: SingleProcess, function: Callable, whole: tuple, divided: tuple):
    """Calls function(ranks, *whole, *divided) on all devices that share; what it returns must be equal on all.

    `whole` is equal on all; of `divided`, [S, B, ...], each has its part, and each process gives those of its devices.
    Arrays lie on this process's first device, before and after.
    """
    if not isinstance(ranks, DeviceGroup):
        return function(ranks, *whole, *divided)
    everywhere = jax.tree.map(partial(_global, ranks.mesh, WHOLE), whole)
    parts = jax.tree.map(partial(_global, ranks.mesh, DIVIDED), divided)
    results = _compiled(ranks, function, len(whole), len(divided))(*everywhere, *parts)
    return jax.tree.map(lambda result: result.addressable_data(0), results)


@cache
def _compiled(ranks: DeviceGroup, function: Callable, whole: int, divided: int) -> Callable:
    specs = (WHOLE,) * whole + (DIVIDED,) * divided
    spread = jax.shard_map(partial(function, ranks), mesh=ranks.mesh, in_specs=specs, out_specs=WHOLE, check_vma=False)
    return jax.jit(spread)


def _global(mesh: Mesh, spec: PartitionSpec, mine) -> Array:
    """An array over the mesh, of what each process has; what is on its device already is not copied."""
    sharding = NamedSharding(mesh, spec)
    if len(mesh.local_devices) > 1:
        return jax.device_put(np.asarray(mine), sharding)  # as NumPy's: all CPU devices then read the same memory
    shape = (mine.shape[0], mine.shape[1] * mesh.size, *mine.shape[2:]) if spec == DIVIDED else np.shape(mine)
    local = jax.device_put(mine, mesh.local_devices[0])
    return jax.make_array_from_single_device_arrays(shape, sharding, [local])
