"""Recurrent networks, transformers of PyTorch's own, and losses of sequences."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from evidence.coverage.pytorch_training import OPTIMIZERS, Training
from evidence.coverage.registry import program


def training(model: nn.Module, loss: Any, optimizer: str = "AdamW", **options: Any) -> Training:
    """A training whose loss has its data already."""
    steps = OPTIMIZERS[optimizer](list(model.parameters()))
    return Training(model, lambda number: number, steps, loss=loss, clip=1.0, **options)


class Tagger(nn.Module):
    """Tags of packed sequences of several lengths, by a recurrent network in both directions."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16, padding_idx=0)
        self.layers = kind(16, 24, 2, bidirectional=True, dropout=0.2, batch_first=True, **options)
        width = 2 * (options.get("proj_size") or 24)
        self.head = nn.Linear(width, 20)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        result, _ = pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        return self.head(result)


def _tagger(name: str, kind: type[nn.RNNBase], **options: Any) -> None:
    @program("others", name)
    def build() -> Training:
        model = Tagger(kind, **options)
        nn.init.orthogonal_(model.layers.weight_hh_l0)
        tokens, lengths = torch.randint(1, 20, (4, 10)), torch.tensor([7, 10, 5, 2])
        return training(model, lambda model, _: F.cross_entropy(model(tokens, lengths).flatten(0, 1), tokens.flatten()))


_tagger("lstm, packed", nn.LSTM)
_tagger("lstm with projections, packed", nn.LSTM, proj_size=8)
_tagger("gru, packed", nn.GRU)
_tagger("rnn, packed", nn.RNN, nonlinearity="relu")


@program("others", "lstm of characters")
def characters() -> Training:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layers, self.head = nn.Embedding(20, 16), nn.LSTM(16, 32, 2), nn.Linear(32, 20)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.layers(self.embedding(tokens))[0])

    tokens = torch.randint(20, (16, 4))
    return training(Model(), lambda model, _: F.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten()))


@program("others", "recurrent cells")
def cells() -> Training:
    model = nn.ModuleList([nn.GRUCell(8, 8), nn.LSTMCell(8, 8), nn.RNNCell(8, 8)])
    x = torch.randn(5, 4, 8)

    def loss(model: Any, _: Any) -> Tensor:
        gru: Any = None
        lstm: Any = None
        rnn: Any = None
        for step in x:
            gru, lstm, rnn = model[0](step, gru), model[1](step, lstm), model[2](step, rnn)
        return (gru + lstm[0] + rnn).square().mean()

    return training(model, loss, "RMSprop")


@program("others", "ctc of speech")
def speech() -> Training:
    model = nn.Sequential(nn.Conv1d(6, 12, 3, padding=1), nn.BatchNorm1d(12), nn.ReLU())
    layers, head = nn.GRU(12, 8, bidirectional=True), nn.Linear(16, 5)
    sound, targets = torch.randn(3, 6, 14), torch.randint(1, 5, (3, 4))
    lengths, sizes = torch.tensor([14, 12, 9]), torch.tensor([4, 2, 3])

    def loss(model: Any, _: Any) -> Tensor:
        outputs = model[2](model[1](model[0](sound).permute(2, 0, 1))[0])
        return F.ctc_loss(outputs.log_softmax(-1), targets, lengths, sizes, zero_infinity=True)

    return training(nn.ModuleList([model, layers, head]), loss)


@program("others", "nn.Transformer")
def translation() -> Training:
    source, target = torch.rand(2, 5, 16), torch.rand(2, 4, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
    return training(model, lambda model, _: model(source, target, tgt_mask=mask, tgt_is_causal=True).square().mean())


@program("others", "nn.TransformerEncoder, padded, evaluated")
def encoder() -> dict[str, Tensor]:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, 2)
    x, padding = torch.rand(2, 5, 16), torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], dtype=torch.bool)
    trained = training(model, lambda model, _: model(x, src_key_padding_mask=padding).square().mean()).run()
    model.eval()
    with torch.no_grad():
        results = {"whole": model(x), "padded": model(x, src_key_padding_mask=padding)}
    with torch.inference_mode():
        results["inference"] = model(x).clone()
    return {**trained, **results}


@program("others", "nn.MultiheadAttention")
def attention() -> Training:
    model = nn.ModuleList(
        [nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True, add_bias_kv=True), nn.RMSNorm(16)]
    )
    x = torch.rand(2, 5, 16)

    def loss(model: Any, _: Any) -> Tensor:
        outputs, weights = model[0](x, x, x)
        return model[1](outputs).square().mean() + weights.amax() + model[0](x, x, x, need_weights=False)[0].mean()

    return training(model, loss)


@program("others", "bags of words")
def bags() -> Training:
    model = nn.ModuleList([nn.EmbeddingBag(10, 4, mode=mode, padding_idx=0) for mode in ("sum", "mean", "max")])
    weights = nn.Parameter(torch.rand(12))
    model.register_parameter("weights", weights)
    tokens, starts = torch.randint(10, (12,)), torch.tensor([0, 3, 3, 7])

    def loss(model: Any, _: Any) -> Tensor:
        total = model[0](tokens, starts, weights) + model[1](tokens, starts) + model[2](tokens, starts).square()
        return (total * torch.arange(4.0)).square().mean()

    return training(model, loss, "Adagrad")
