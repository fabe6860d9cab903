"""What ranks cost: `measure` times 1, 2 and 4 of them here, `model` computes 8 to 1,024. Its tables stand in scale.md.

.venv/jax/bin/python docs/scale.py model
.venv/jax/bin/python docs/scale.py measure WORKSPACE
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from repro.run import times  # noqa: E402 (it is found there)

WEIGHTS = 21_840
LAYERS = (260, 5_020, 16_050, 510)  # kernel and bias of conv1, conv2, dense1, dense2

# The exchanges of a step, in bytes. Deterministic: gradients and loss in float32, at once. Portable: for each layer the
# exponents of two grids, and then its gradients in float64; and the loss. Fused: all exponents, then all gradients.
EXCHANGES = {
    "deterministic": [4 * (WEIGHTS + 1)],
    "portable": [8, *[size for layer in reversed(LAYERS) for size in (16, 8 * layer)]],
    "portable, fused": [8 * 2 * len(LAYERS), 8 * (WEIGHTS + 1)],
}
NETWORKS = {"10 Gbit Ethernet": (30e-6, 1.2e9), "InfiniBand HDR": (2e-6, 20e9)}  # seconds a message, bytes a second
STEP = {"deterministic": 1.5e-3, "portable": 4.5e-3, "portable, fused": 4.5e-3}  # seconds of 32 samples on a rank
JITTER = 0.1  # standard deviation of how long a rank computes in a step, of independent delays between exchanges
RANKS = (8, 32, 128, 512, 1024)


def exchange(size: int, ranks: int, latency: float, bandwidth: float) -> float:
    """Seconds of one all-reduce: the faster of a ring and of recursive doubling.

    The costs are those of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
    MPICH", 2005, section 4.5, without the time for adding.
    """
    ring = 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / bandwidth
    doubling = np.ceil(np.log2(ranks)) * (latency + size / bandwidth)
    return float(min(ring, doubling))


def waiting(exchanges: int, ranks: int, steps: int = 200) -> float:
    """How much longer a step takes because each exchange waits for the slowest rank, simulated; 0: no longer."""
    random = np.random.Generator(np.random.Philox(key=[exchanges, ranks]))
    delays = JITTER * exchanges**-0.5 * random.standard_normal((steps, exchanges, ranks))  # they add up to JITTER
    return float(delays.max(axis=2).sum(axis=1).mean())


def model() -> None:
    """Prints the modelled tables: a rank has 32 samples of each batch, whatever the number of ranks."""
    for network, (latency, bandwidth) in NETWORKS.items():
        print(f"\n{network}, {latency * 1e6:g} us a message, {bandwidth / 1e9:g} GB/s\n")
        print("| ranks | " + " | ".join(EXCHANGES) + " |\n|" + " --- |" * (1 + len(EXCHANGES)))
        for ranks in RANKS:
            cells = []
            for name, sizes in EXCHANGES.items():
                talk = sum(exchange(size, ranks, latency, bandwidth) for size in sizes)
                wait = STEP[name] * waiting(len(sizes), ranks)
                share = STEP[name] / (STEP[name] + talk + wait)
                cells.append(f"{talk * 1e3:.2f} + {wait * 1e3:.2f} ms, {share:.0%}")
            print(f"| {ranks:,} | " + " | ".join(cells) + " |")


def measure(workspace: Path) -> None:
    """Prints milliseconds a step, the median of nine calls of 20 steps, of 1, 2 and 4 ranks with one thread each."""
    print("| framework | numerics | 1 rank, ms a step | 2 ranks | 4 ranks |\n|" + " --- |" * 5)
    for framework in ("pytorch", "tensorflow", "jax"):
        for numerics in ("deterministic", "portable"):
            one, *more = (_milliseconds(workspace, framework, numerics, ranks) for ranks in (1, 2, 4))
            ratios = " | ".join(f"{several:.2f}, {several / one:.2f} x" for several in more)
            print(f"| {framework} | {numerics} | {one:.2f} | {ratios} |", flush=True)


def _milliseconds(workspace: Path, framework: str, numerics: str, ranks: int) -> float:
    keys = [f"params.numerics={numerics}", f"params.ranks={ranks}", "params.max_steps=200", "params.log_interval=20",
            "params.threads=1", "params.device=cpu"]  # fmt: skip
    subprocess.run([ROOT / "run.sh", framework, f"--workspace={workspace}", *keys], check=True, capture_output=True)
    newest = max((workspace / "outputs" / framework).iterdir())
    calls = json.loads((newest / times.NAME).read_text())["calls"]
    return 1e3 * statistics.median(call["seconds"] / call["steps"] for call in times.steady(calls))


if __name__ == "__main__":
    model() if sys.argv[1:2] == ["model"] else measure(Path(sys.argv[2]))
