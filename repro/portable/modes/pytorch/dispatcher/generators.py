"""Keys of draws, from the program's own generators.

A draw takes one integer from PyTorch's mt19937, which is the same on each machine. So seeds, states of generators and what
saves them work as before. A GPU draws from generators of the CPU, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor

from repro.portable.modes.pytorch.dispatcher.refusal import refuse

WORD_STEP = 4
"""The number by which a word moves the offset of a CUDA generator, which PyTorch keeps a multiple of 4."""
TWINS = 64
"""The number of twins that are kept, the latest ones."""
CHUNK = 2**20
CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
WORDS = 624
"""The state of mt19937."""

_twins: dict[tuple[int, int], Generator] = {}
"""CPU generators by the seed and the offset of the CUDA generators that they stand for."""


def key(name: str, generator: Generator | None, device: torch.device) -> Tensor | int:
    """The key of the next draw, below 2^63: int64 of no dimension on a CPU, an int on a GPU."""
    if device.type == "cpu":
        return _next(generator)
    with on_cpu(name, generator, device) as taken:
        return int(_next(taken))


def _next(generator: Generator | None) -> Tensor:
    """Draws by PyTorch's kernel directly, not by the mode's `random_`, which costs as much again."""
    return torch.ops.aten.random_.default.redispatch(
        CPU, torch.empty((), dtype=torch.int64, device="cpu"), generator=generator
    )


@contextmanager
def on_cpu(name: str, generator: Generator | None, device: torch.device) -> Iterator[Generator | None]:
    """The CPU generator that a draw on a GPU takes numbers from.

    The GPU's default generator is that of the CPU, as long as both have one seed: so a program draws the same on both.
    Otherwise it is one with the seed of the CUDA generator, at the place that its offset says.
    """
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        raise refuse(name, "a CUDA graph would draw the same numbers at each replay", "draw outside of the graph")
    if generator is None:
        generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
        if generator.initial_seed() == torch.default_generator.initial_seed():
            yield None
            return
    elif generator.device.type != device.type:
        message = f"Expected a '{device.type}' device type for generator but found '{generator.device.type}'"
        raise RuntimeError(message)
    seed, offset = generator.initial_seed(), generator.get_offset()
    twin = _twins.pop((seed, offset), None) or advanced(Generator().manual_seed(seed), offset // WORD_STEP)
    before = Generator()
    before.set_state(twin.get_state())
    yield twin
    offset += WORD_STEP * words_between(before, twin)
    generator.set_offset(offset)
    _twins[seed, offset] = twin
    if len(_twins) > TWINS:
        del _twins[next(iter(_twins))]


def advanced(generator: Generator, words: int) -> Generator:
    """A CPU generator after some words more."""
    skipped = torch.empty(min(words, CHUNK), dtype=torch.int32, device="cpu")
    for start in range(0, words, CHUNK):
        skipped[: words - start].random_(generator=generator)
    return generator


def words_between(before: Generator, after: Generator) -> int:
    """The number of words that were taken between two states of a CPU generator; `before` is moved on."""
    wanted = after.get_state()
    step = (_place(wanted) - _place(before.get_state())) % WORDS or WORDS
    words = 0
    while not torch.equal(before.get_state(), wanted):
        advanced(before, step)
        words, step = words + step, WORDS
    return words


def _place(state: Tensor) -> int:
    """The next word of mt19937's 624: PyTorch saves the seed, how many are left, whether it is seeded, and this."""
    return int.from_bytes(bytes(state[16:20].tolist()), "little")
