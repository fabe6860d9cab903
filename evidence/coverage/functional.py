"""Programs that differentiate twice or forward, map, checkpoint, or compute in other types."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

from evidence.coverage.pytorch_training import Training
from evidence.coverage.registry import STEPS, program
from evidence.coverage.sequences import training


@program("others", "torch.func")
def per_sample() -> dict[str, Tensor]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    weights = {name: each.detach() for name, each in model.named_parameters()}
    x, y = torch.rand(5, 4), torch.rand(5, 1)

    def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(functional_call(model, weights, (x,)), y)

    for _ in range(STEPS):
        slopes = vmap(grad(loss), (None, 0, 0))(weights, x, y)
        weights = {name: each - 0.1 * slopes[name].mean(0) for name, each in weights.items()}

    def found(x: Tensor) -> Tensor:
        return functional_call(model, weights, (x,)).squeeze(-1)

    value, slope = jvp(found, (x,), (torch.ones_like(x),))
    return weights | {"value": value, "slope": slope, "jacobian": jacrev(found)(x[0]), "hessian": hessian(found)(x[0])}


@program("others", "a recurrent network, mapped, differentiated forward and twice")
def recurrent() -> dict[str, Tensor]:
    model = nn.LSTM(3, 4)
    weights = {name: each.detach() for name, each in model.named_parameters()}
    x = torch.rand(6, 5, 2, 3)

    def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, weights, (x,))[0].square().mean()

    slopes = vmap(grad(loss), (None, 0))(weights, x)
    _, forward = jvp(lambda x: functional_call(model, weights, (x,))[0], (x[0],), (torch.ones_like(x[0]),))
    given = x[0].clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(given)[0].sum(), given, create_graph=True)
    slope.square().sum().backward()
    twice = {f"twice.{name}": each.grad for name, each in model.named_parameters() if each.grad is not None}
    assert given.grad is not None
    return slopes | twice | {"forward": forward, "given": given.grad}


@program("others", "forward mode")
def forward() -> dict[str, Tensor]:
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2), nn.Softmax(-1))
    x = torch.rand(3, 4)
    with forward_ad.dual_level():
        result = forward_ad.unpack_dual(model(forward_ad.make_dual(x, torch.ones_like(x))))
    assert result.tangent is not None
    return {"value": result.primal, "slope": result.tangent}


@program("others", "checkpointed activations")
def checkpointed() -> Training:
    model = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.GELU()) for _ in range(2)])
    model.append(nn.LSTM(8, 8))
    x = torch.rand(4, 3, 8)

    def loss(model: Any, _: Any) -> Tensor:
        y = checkpoint(model[0], x, use_reentrant=False)
        y = checkpoint(model[1], y, use_reentrant=True)
        return checkpoint(lambda y: model[2](y)[0], y, use_reentrant=False).square().mean()

    return training(model, loss)


def _classifier() -> nn.Module:
    features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    return nn.Sequential(features, nn.Linear(8 * 36, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


@program("others", "autocast, bfloat16")
def bfloat16() -> Training:
    x, y = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])

    def loss(model: nn.Module, _: Any) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(model(x), y)

    return training(_classifier(), loss)


@program("others", "autocast, float16, scaled")
def float16() -> dict[str, Tensor]:
    model, x, y = _classifier(), torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    steps, scaler = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), torch.amp.GradScaler("cpu")
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(model(x), y)
        steps.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(steps)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(steps)
        scaler.update()
    return model.state_dict()


@program("others", "autocast, recurrent and attention")
def mixed() -> Training:
    model, x = nn.ModuleList([nn.LSTM(8, 8), nn.MultiheadAttention(8, 2)]), torch.rand(4, 3, 8)

    def loss(model: Any, _: Any) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = model[0](x)[0]
            return model[1](y, y, y)[0].float().square().mean()

    return training(model, loss)


@program("others", "bfloat16 alone")
def halves() -> Training:
    model, x = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).bfloat16(), torch.rand(2, 5, 16).bfloat16()
    return training(model, lambda model, _: model(x).square().mean())


@program("others", "float64")
def doubles() -> Training:
    model = nn.ModuleList([nn.LSTM(8, 8), nn.TransformerEncoderLayer(8, 2, 16)]).double()
    x = torch.rand(4, 3, 8).double()
    return training(model, lambda model, _: model[1](model[0](x)[0]).square().mean())
