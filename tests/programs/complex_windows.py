"""Short-time Fourier transforms by complex windows in PyTorch, under portable numerics: prints JSON of digests, or of refusals."""

import hashlib
import json
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import repro.portable.pytorch as portable
from repro.portable.modes.common.refusal import RefusedError

SIZE, HOP = 64, 16
REALS = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def outcome(function: Callable[[], Tensor]) -> str:
    """The SHA-256 of a complex result, or the first words of its refusal."""
    try:
        y = torch.view_as_real(function()).contiguous()
    except RefusedError as error:
        return str(error).partition(" at ")[0]
    return hashlib.sha256(y.numpy().tobytes()).hexdigest()


def main() -> None:
    results = {}
    with portable.enable():
        x = torch.randn(2, 400, generator=torch.Generator().manual_seed(0))
        for dtype, real in REALS.items():
            window = torch.complex(torch.hann_window(SIZE, dtype=real), torch.hamming_window(SIZE, dtype=real))
            for kind, signal in {"real": x.to(real), "complex": torch.complex(x, x.flip(1)).to(dtype)}.items():
                given = (SIZE, HOP, SIZE, window)
                transform = partial(torch.stft, signal, *given, return_complex=True)
                results[f"stft {kind} {real}"] = outcome(transform)
                inverse = partial(torch.istft, transform(), *given, onesided=False, return_complex=True)
                results[f"istft {kind} {real}"] = outcome(inverse)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
