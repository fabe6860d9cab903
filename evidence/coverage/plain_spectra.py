"""Small models that compute in frequencies, with complex numbers."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from evidence.coverage.pytorch_training import OPTIMIZERS, Training, classifier
from evidence.coverage.registry import program


class SpectralConvolution(nn.Module):
    """Weights for the lowest frequencies of a plane: Z. Li et al., Fourier Neural Operator, arXiv 2010.08895."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.rand(width, width, modes, modes, dtype=torch.cfloat) / width)

    def forward(self, x: Tensor) -> Tensor:
        given, kept = torch.fft.rfft2(x, norm="ortho"), self.modes
        made = torch.zeros_like(given)
        made[..., :kept, :kept] = torch.einsum("bixy,ioxy->boxy", given[..., :kept, :kept], self.weight)
        return torch.fft.irfft2(made, s=x.shape[-2:], norm="ortho")


@program("plain", "fourier operator")
def fourier_operator() -> Training:
    class Operator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lift, self.project = nn.Conv2d(1, 6, 1), nn.Conv2d(6, 1, 1)
            self.spectral = nn.ModuleList(SpectralConvolution(6, 4) for _ in range(2))
            self.beside = nn.ModuleList(nn.Conv2d(6, 6, 1) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            x = self.lift(x)
            for spectral, beside in zip(self.spectral, self.beside, strict=True):
                x = F.gelu(spectral(x) + beside(x))
            return self.project(x)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return F.mse_loss(model(batch), batch.roll(1, -1).cumsum(-1))

    model, batch = Operator(), torch.randn(3, 1, 16, 12)
    return Training(model, lambda _: batch, OPTIMIZERS["Adam"](list(model.parameters())), loss)


@program("plain", "speech from raw sound")
def speech() -> Training:
    """A spectrogram with logarithmic bands, convolutions, a recurrent network, CTC."""

    class Listener(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(64))
            self.bands = nn.Parameter(torch.rand(33, 12))
            self.convolution = nn.Conv1d(12, 16, 5, stride=2, padding=2)
            self.recurrent = nn.GRU(16, 12, bidirectional=True, batch_first=True)
            self.head = nn.Linear(24, 6)

        def forward(self, sound: Tensor) -> Tensor:
            spectrum = torch.stft(sound, 64, 16, window=self.window, return_complex=True)
            x = (spectrum.abs().square().mT @ self.bands.abs() + 1e-5).log()
            x = F.relu(self.convolution(x.mT)).mT
            return self.head(self.recurrent(x)[0]).log_softmax(-1)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        sound, words = batch
        x = model(sound).transpose(0, 1)
        lengths = torch.full((len(sound),), len(x)), torch.full((len(sound),), words.shape[1])
        return F.ctc_loss(x, words, *lengths)

    model, batch = Listener(), (torch.randn(3, 800), torch.randint(1, 6, (3, 5)))
    return Training(model, lambda _: batch, OPTIMIZERS["AdamW"](list(model.parameters())), loss, clip=1.0)


@program("plain", "rotary attention by complex numbers")
def rotary_attention() -> Training:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.head = nn.Linear(16, 48), nn.Linear(16, 10)

        def forward(self, x: Tensor) -> Tensor:
            angles = torch.outer(torch.arange(x.shape[1]), 100.0 ** -torch.arange(0, 1, 0.25))
            turns = torch.polar(torch.ones_like(angles), angles)
            query, key, value = self.project(x).view(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
            query, key = (
                torch.view_as_real(torch.view_as_complex(each.unflatten(-1, (4, 2))) * turns).flatten(-2)
                for each in (query, key)
            )
            y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            return self.head(y.transpose(1, 2).flatten(2).mean(1))

    return classifier(Attention(), "Adam", (3, 7, 16))
