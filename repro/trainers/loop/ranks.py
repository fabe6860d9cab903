"""Ranks of a data-parallel run.

Which of them a process is, which part of a batch is whose, and that all agree.
"""

import os
import re
import socket
from dataclasses import dataclass

from repro.errors import ReproError, UsageError
from repro.portable.definitions.ranks import SingleProcess

LOOPBACK = "127.0.0.1"
FIRST_PORT, PORTS = 61440, 4096
"""Ports for Slurm jobs without MASTER_PORT: each job's own, by its number."""


@dataclass(frozen=True)
class RankInfo:
    """A process' rank, as its launcher says."""

    rank: int
    size: int
    """The number of ranks."""
    hosts: tuple[str, ...]
    """The hosts of all ranks: equally many on each, in their order."""
    port: int
    """The port of rank 0; TensorFlow's rank i listens on port + i."""
    local_rank: int = 0
    """The rank's number on its machine."""

    def host(self, rank: int) -> str:
        """The host of a rank."""
        return self.hosts[rank * len(self.hosts) // self.size]

    def variables(self) -> dict[str, str]:
        """The variables that torchrun sets, for frameworks and for rank_from_environment()."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local_rank),
            "MASTER_ADDR": self.hosts[0],
            "MASTER_PORT": str(self.port),
            "REPRO_HOSTS": ",".join(self.hosts),
        }


def rank_from_environment() -> RankInfo | None:
    """This process' rank by the variables of torchrun or Slurm's `srun`; None where no launcher started it.

    UsageError where a variable is missing or no number.
    """
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        hosts = os.environ.get("REPRO_HOSTS") or _variable("MASTER_ADDR")
        rank = RankInfo(
            rank=_number("RANK"),
            size=_number("WORLD_SIZE"),
            hosts=tuple(hosts.split(",")),
            port=_number("MASTER_PORT"),
            local_rank=_number("LOCAL_RANK", "0"),
        )
    elif _number("SLURM_STEP_NUM_TASKS", "1") > 1:
        nodes = tuple(expand(_variable("SLURM_STEP_NODELIST")))
        job = _number("SLURM_JOB_ID") + 64 * _number("SLURM_STEP_ID", "0")
        rank = RankInfo(
            rank=_number("SLURM_PROCID"),
            size=_number("SLURM_STEP_NUM_TASKS"),
            hosts=nodes if len(nodes) > 1 else (LOOPBACK,),
            port=_number("MASTER_PORT", str(FIRST_PORT + job % PORTS)),
            local_rank=_number("SLURM_LOCALID", "0"),
        )
    else:
        return None
    if not 0 <= rank.rank < rank.size or rank.size % len(rank.hosts):
        raise UsageError(
            f"ranks: the launcher says rank {rank.rank} of {rank.size}, on {','.join(rank.hosts)}; ranks count from "
            "0, and there must be equally many on each host"
        )
    return rank


def _variable(name: str, default: str | None = None) -> str:
    value = os.environ.get(name) or default
    if value is None:
        raise UsageError(f"ranks: the launcher has not set {name}; start with params.ranks=N, torchrun or srun")
    return value


def _number(name: str, default: str | None = None) -> int:
    value = _variable(name, default)
    if not value.isdecimal():
        raise UsageError(f"ranks: {name}={value} must be a number; it is the launcher that sets it")
    return int(value)


def expand(nodes: str) -> list[str]:
    """Expands Slurm's list of nodes: `gpu[01-03,7],login` -> gpu01, gpu02, gpu03, gpu7, login."""
    expanded: list[str] = []
    for prefix, inner, suffix in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?([^,\[\]]*)", nodes):
        for part in inner.split(",") if inner else [""]:
            first, _, last = part.partition("-")
            for number in range(int(first or 0), int(last or first or 0) + 1):
                expanded.append(f"{prefix}{number:0{len(first)}}{suffix}" if inner else prefix + suffix)  # noqa: PERF401
    return expanded


def size(rank_info: RankInfo, configured: int) -> int:
    """The number of ranks that the launcher started. UsageError where the configuration asks for another number."""
    if configured not in (1, rank_info.size):
        there = rank_info.size
        raise UsageError(f"params.ranks={configured}: the launcher started {there} ranks; leave params.ranks out")
    return rank_info.size


def own_gpu(rank_info: RankInfo, there: int) -> dict[str, str]:
    """Variables by which a rank sees one GPU of those on its machine, its own, where there are enough."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(index) for index in range(there)]
    return {"CUDA_VISIBLE_DEVICES": names[rank_info.local_rank]} if rank_info.local_rank < len(names) else {}


def check_port(rank_info: RankInfo) -> None:
    """ReproError on rank 0 where another program has its port; frameworks would wait, or say it in many lines."""
    if rank_info.rank == 0 and not os.environ.get("TORCHELASTIC_USE_AGENT_STORE"):  # then torchrun has the port
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("", rank_info.port))
            except OSError as error:
                reason = f"port {rank_info.port} cannot be listened on ({error.strerror})"
                raise ReproError(f"ranks: {reason}; set MASTER_PORT to a free one") from None


class ProcessGroup(SingleProcess):
    """A process of several that share each batch; repro/trainers/native/FRAMEWORK/ranks.py says how."""

    joined = False
    """True if this process has met others."""

    def __init__(self, rank_info: RankInfo) -> None:
        self.rank, self.size = rank_info.rank, rank_info.size
        ProcessGroup.joined = True
