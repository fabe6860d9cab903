"""The gradient of ways.py by processes that share its rows, under the mode: prints, as JSON, the hash of each of them.

Usage: processes.py RANKS
"""

import json
import subprocess
import sys

import jax
from jax.sharding import NamedSharding, PartitionSpec

import repro.portable.jax as portable
from programs.jax_mode.ways import WEIGHTS, X, digest, gradient, mesh
from repro.trainers.loop.launch import free_port


def shared(rank: int, ranks: int, port: int) -> str:
    """The hash in one process of several."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", ranks, rank)
    portable.enable()
    rows, everywhere = (NamedSharding(mesh(), PartitionSpec(*axes)) for axes in (("rows",), ()))
    x = jax.make_array_from_callback(X.shape, rows, lambda part: X[part])
    return digest(each.addressable_data(0) for each in jax.jit(gradient, out_shardings=everywhere)(WEIGHTS, x))


def main(ranks: str) -> None:
    port = str(free_port(1))
    commands = [[sys.executable, __file__, str(rank), ranks, port] for rank in range(int(ranks))]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [each.communicate()[0] for each in started]
    print(json.dumps([output.splitlines()[-1] for output in outputs]))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        print(shared(*map(int, sys.argv[1:])))
