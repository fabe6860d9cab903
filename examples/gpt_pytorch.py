"""A GPT in PyTorch, in portable numerics: the network, one training step, and a trainer.

    python examples/gpt_pytorch.py --steps 20

The counterparts are gpt_jax.py and gpt_tensorflow.py: the same functions in the same order, and the
same fingerprint.
"""

import common
import gpt
import numpy as np
import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.portable.backends.checks import pytorch as checks
from repro.portable.backends.pytorch import Backend
from repro.portable.definitions.ranks import SINGLE_PROCESS
from repro.portable.library.pytorch import functional
from repro.trainers.loop.config import Params
from repro.trainers.loop.ranks import RankInfo
from repro.trainers.native.pytorch.ranks import join

SLOTS = {"first": "exp_avg", "second": "exp_avg_sq"}
"""PyTorch's names of the slots."""


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = portable.Embedding(*gpt.WEIGHTS["tokens.embedding"])
        self.blocks = nn.ModuleList([Block() for _ in range(gpt.LAYERS)])
        self.norm = portable.LayerNorm(gpt.WIDTH, gpt.EPSILON)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens, int [B, T] -> logits of the ones that follow, float32 [B, T, characters]."""
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = portable.LayerNorm(gpt.WIDTH, gpt.EPSILON)
        self.qkv = portable.Linear(gpt.WIDTH, 3 * gpt.WIDTH)
        self.out = portable.Linear(gpt.WIDTH, gpt.WIDTH)
        self.norm2 = portable.LayerNorm(gpt.WIDTH, gpt.EPSILON)
        self.up = portable.Linear(gpt.WIDTH, 4 * gpt.WIDTH)
        self.down = portable.Linear(4 * gpt.WIDTH, gpt.WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, C] -> [B, T, C]."""
        x = functional.add(x, self.out(attend(self.qkv(self.norm1(x)))))
        return functional.add(x, self.down(functional.gelu(self.up(self.norm2(x)))))


def attend(qkv: Tensor) -> Tensor:
    """Queries, keys and values, [B, T, 3 C] -> [B, T, C]."""
    q, k, v = qkv.unflatten(-1, (3, gpt.HEADS, -1)).permute(2, 0, 3, 1, 4).unbind()  # [B, heads, T, C / heads] each
    y = functional.scaled_dot_product_attention(functional.rotary(q), functional.rotary(k), v, is_causal=True)
    return y.transpose(1, 2).flatten(2)


class Trainer:
    """Trains the network."""

    def __init__(self, params: Params, mode: common.Mode, rank_info: RankInfo | None) -> None:
        torch.set_num_threads(params.threads)
        self.ranks = join(rank_info, params)
        there = torch.cuda.is_available() and params.device != "cpu"
        self.device = torch.device("cuda" if there or params.device == "gpu" else "cpu")
        checks.self_check(self.device, params.engine)
        self.network = GPT().to(self.device)
        self.weights = dict(zip(gpt.WEIGHTS, self.network.parameters(), strict=True))
        self.optimizer = portable.optim.AdamW(self.weights.values(), betas=gpt.BETAS, weight_decay=gpt.DECAY)
        cpu = self.device.type == "cpu"  # where the loops of repro.portable are faster
        if cpu and mode == "compiled":
            common.find_compiler()
        if mode == "compiled" or (mode == "auto" and not cpu):
            for block in self.network.blocks:
                block.compile(dynamic=False)

    def step(self, rate: float, inputs: np.ndarray, targets: np.ndarray) -> float:
        """Trains on a batch, int32 [B, T] both, and returns its loss."""
        Backend.ranks = self.ranks
        loss = self._loss(inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        portable.optim.clip_grad_norm_([self.weights[name] for name in sorted(self.weights)], gpt.LIMIT)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, inputs: np.ndarray, targets: np.ndarray) -> float:
        """The mean loss of these."""
        Backend.ranks = SINGLE_PROCESS
        return self._loss(inputs, targets).item()

    def _loss(self, inputs: np.ndarray, targets: np.ndarray) -> Tensor:
        tokens, following = (torch.from_numpy(each).to(self.device) for each in (inputs, targets))
        return functional.cross_entropy(self.network(tokens).flatten(0, 1), following.flatten())

    def state(self) -> common.Arrays:
        """Weights and slots, float32, by the names and in the layout of gpt.WEIGHTS."""
        return {name: np.array(tensor.detach().cpu().numpy(), order="C") for name, tensor in self._tensors().items()}

    @torch.no_grad()
    def load_state(self, state: common.Arrays, step: int) -> None:
        """Takes over what state() returned after so many steps, in any framework."""
        for weight in self.weights.values():
            self.optimizer.state[weight] = {own: torch.zeros_like(weight) for own in SLOTS.values()} | {"step": step}
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(state[name]))

    def _tensors(self) -> dict[str, Tensor]:
        slots = self.optimizer.state
        results = {
            f"{slot}/{name}": slots[weight][own] for slot, own in SLOTS.items() for name, weight in self.weights.items()
        }
        return {name: each.T if name.endswith("kernel") else each for name, each in (self.weights | results).items()}


if __name__ == "__main__":
    common.main("pytorch", gpt, Trainer)
