"""Training under `enable(elastic=True)`: prints, as JSON, the fingerprint of each way to split a batch.

Usage: mode_elastic.py NETWORK [RANKS...]: by accumulation, then by DDP over these numbers of ranks, in new processes.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import repro.portable.pytorch as portable

SAMPLES, STEPS = 32, 3


class Block(nn.Module):
    """A layer of a GPT with 2 heads."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attended, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attended(self.before(x)).chunk(3, -1)
        heads = (each.unflatten(2, (2, -1)).transpose(1, 2) for each in parts)
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


class GPT(nn.Module):
    """Four words of text in, the next ones out; positions are the same rows for each sample, the last layer is the first."""

    def __init__(self, words: int = 60, length: int = 12, size: int = 32) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(length, size)
        self.blocks, self.norm = nn.Sequential(Block(size), Block(size)), nn.LayerNorm(size)
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.blocks(self.words(x) + self.places(torch.arange(x.shape[1])))
        return functional.linear(self.norm(hidden) * self.scale, self.words.weight).transpose(1, 2)


class LSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer, self.last = (
            nn.Embedding(60, 24),
            nn.LSTM(24, 32, 2, batch_first=True),
            nn.Linear(32, 60),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layer(self.words(x))[0]).transpose(1, 2)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 40), nn.Tanh(), nn.Linear(40, 7))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.GroupNorm(4, 16),
        nn.SiLU(),
        nn.Conv2d(16, 32, 3, stride=2, groups=2, bias=False),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 5 * 5, 7),
    )


def classes(*shape: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda seed: (_normal(seed, *shape), torch.arange(SAMPLES) * (seed + 3) % 7)


def text(seed: int) -> tuple[Tensor, Tensor]:
    words = _normal(seed, 13).abs().mul(25).long() % 60
    return words[:, :-1], words[:, 1:]


def _normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(SAMPLES, *shape, generator=torch.Generator().manual_seed(seed))


NETWORKS = {"mlp": (mlp, classes(20)), "cnn": (cnn, classes(3, 12, 12)), "gpt": (GPT, text), "lstm": (LSTM, text)}


def train(name: str, micro_batches: int, rank: int = 0, ranks: int = 1, clip: bool = True) -> str:
    """The fingerprint of weights after steps of 32 samples: AdamW, SGD with momentum for a CNN."""
    make, draw = NETWORKS[name]
    torch.manual_seed(3)
    model = make()
    model = DistributedDataParallel(model) if ranks > 1 else model
    sgd = name == "cnn"
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, 0.1, 0.9) if sgd else torch.optim.AdamW(parameters, 1e-2)
    for step in range(STEPS):
        own = [each.chunk(ranks)[rank].chunk(micro_batches) for each in draw(step)]
        for place, (x, target) in enumerate(zip(*own, strict=True)):
            with nullcontext() if ranks == 1 or place == micro_batches - 1 else model.no_sync():
                (functional.cross_entropy(model(x), target) / micro_batches).backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=step != 1)
    return hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in parameters)).hexdigest()[:16]


def run(name: str, rank: int, ranks: int, store: str) -> dict[str, str]:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    results = {f"{ranks} ranks x {count}": train(name, count, rank, ranks) for count in (1, 2)}
    dist.destroy_process_group()
    return results


def start(name: str, rank: int, names: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        Path(names[rank]).write_text(json.dumps(run(name, rank, len(names), f"{names[0]}.store")))
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def main(name: str, *sizes: str) -> None:
    portable.enable(elastic=True)
    results = {f"{count} x {SAMPLES // count}": train(name, count) for count in (1, 2, 4)}
    with tempfile.TemporaryDirectory() as folder:
        for ranks in map(int, sizes):
            names = [f"{folder}/{ranks}-{rank}" for rank in range(ranks)]
            children = [start(name, rank, names) for rank in range(ranks)]
            if sum(os.waitpid(child, 0)[1] for child in children):
                sys.exit("a rank failed")
            for rank, path in enumerate(names):
                results |= {f"{key}, rank {rank}": value for key, value in json.loads(Path(path).read_text()).items()}
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
