"""Small models of PyTorch's own modules, and the smallest of torchvision: what `make test` trains."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from evidence.coverage import plain_spectra
from evidence.coverage.pytorch_training import OPTIMIZERS, Training, classifier
from evidence.coverage.registry import program

__all__ = ["plain_spectra"]


class Transformer(nn.Module):
    """Predicts the next of some tokens."""

    def __init__(self, tokens: int = 11, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.embedding(x), mask=mask, is_causal=True))


@program("plain", "convolutions")
def convolutions() -> Training:
    """BatchNorm, depthwise and transposed convolutions, pooling, interpolation."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.Hardswish(),
        nn.Conv2d(8, 8, 5, padding=2, groups=8),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.ConvTranspose2d(8, 6, 2, stride=2),
        nn.Upsample(scale_factor=1.5, mode="bilinear"),
        nn.Dropout2d(0.2),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 10),
    )
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    return classifier(model, "SGD, fused", (3, 3, 16, 16), average=average, clip=1.0)


@program("plain", "transformer")
def transformer() -> Training:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), label_smoothing=0.1)

    model, batch = Transformer(), torch.randint(11, (3, 9))
    training = Training(model, lambda _: batch, OPTIMIZERS["AdamW, fused"](list(model.parameters())), loss, clip=0.5)
    training.scheduler = OneCycleLR(training.optimizer, 1e-3, total_steps=10)
    return training


@program("plain", "bfloat16")
def bfloat16() -> Training:
    """Under autocast."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast(batch[0].device.type, torch.bfloat16):
            return F.cross_entropy(model(batch[0]), batch[1])

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
    return classifier(model, "RMSprop", (3, 3, 8, 8), loss)


@program("plain", "lstm")
def lstm() -> Training:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = nn.LSTM(5, 8, num_layers=2, dropout=0.1, bidirectional=True)
            self.head = nn.Linear(16, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.recurrent(x)[0][-1])

    model = Last()
    batch = torch.randn(4, 3, 5), torch.randint(10, (3,))
    return Training(model, lambda _: batch, OPTIMIZERS["Adam"](list(model.parameters())))


@program("plain", "autoencoder")
def autoencoder() -> Training:
    """A variational autoencoder in float64."""

    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))
            self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ELU(), nn.Linear(8, 12))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log_variance = self.encoder(x).chunk(2, -1)
            return self.decoder(mean + (0.5 * log_variance).exp() * torch.randn_like(mean)), mean, log_variance

    def loss(model: nn.Module, batch: Any) -> Tensor:
        y, mean, log_variance = model(batch)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        return F.binary_cross_entropy_with_logits(y, batch, reduction="sum") + divergence

    model, batch = Coder().double(), torch.rand(6, 12, dtype=torch.float64)
    return Training(model, lambda _: batch, OPTIMIZERS["Adagrad"](list(model.parameters())), loss)


@program("plain", "inverted bottleneck")
def inverted_bottleneck() -> Training:
    """Of torchvision's EfficientNet, with squeeze and excitation, and stochastic depth."""
    from torchvision.models.efficientnet import MBConv, MBConvConfig

    block = MBConv(MBConvConfig(1, 3, 1, 8, 8, 1), 0.3, nn.BatchNorm2d)
    return classifier(nn.Sequential(block, nn.Flatten(), nn.Linear(128, 10)), "NAdam", (3, 8, 4, 4))
