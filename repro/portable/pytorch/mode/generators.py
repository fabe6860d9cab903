"""Keys of draws, from the program's own generators.

A draw takes one integer from PyTorch's mt19937, which is the same on each machine. So seeds, states of generators and what
saves them work as before.
"""

import torch
from torch import Generator, Tensor

from repro.portable.pytorch.mode.refusal import refuse

CUDA_STEP = 4
"""What a draw adds to the offset of a CUDA generator, which PyTorch keeps a multiple of 4."""
TWINS = 64
CHUNK = 2**20

_twins: dict[tuple[int, int], Generator] = {}
"""CPU generators by the seed and the offset of the CUDA generators that they stand for, the latest last."""


def key(name: str, generator: Generator | None, device: torch.device) -> Tensor | int:
    """The key of the next draw, below 2^63: int64 of no dimension on a CPU, an int on a GPU."""
    if device.type == "cpu":
        return torch.empty((), dtype=torch.int64).random_(generator=generator)
    return int(torch.empty((), dtype=torch.int64).random_(generator=on_cpu(name, generator, device)))


def on_cpu(name: str, generator: Generator | None, device: torch.device) -> Generator | None:
    """The CPU generator from which a tensor on a device takes its draw, which is counted.

    A GPU's default generator is that of the CPU, as long as both have one seed: so a program draws the same on both.
    """
    if device.type == "cpu":
        return generator
    if torch.cuda.is_current_stream_capturing():
        raise refuse(name, "a CUDA graph would draw the same numbers at each replay", "draw outside of the graph")
    if generator is None:
        generator = torch.cuda.default_generators[device.index or 0]
        if generator.initial_seed() == torch.default_generator.initial_seed():
            return None
    return _twin(generator)


def _twin(generator: Generator) -> Generator:
    """A CPU generator at the place of a CUDA generator, whose offset is moved on by one draw."""
    seed, offset = generator.initial_seed(), generator.get_offset()
    twin = _twins.pop((seed, offset), None) or _advanced(seed, offset // CUDA_STEP)
    generator.set_offset(offset + CUDA_STEP)
    _twins[seed, offset + CUDA_STEP] = twin
    if len(_twins) > TWINS:
        del _twins[next(iter(_twins))]
    return twin


def _advanced(seed: int, draws: int) -> Generator:
    """A CPU generator of a seed after a number of draws."""
    generator = Generator().manual_seed(seed)
    skipped = torch.empty(min(draws, CHUNK), dtype=torch.int64)
    for start in range(0, draws, CHUNK):
        skipped[: draws - start].random_(generator=generator)
    return generator
