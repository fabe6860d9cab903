"""What `enable(elastic=True)` refuses, and what it does not: prints, as JSON, an error or "" for each program."""

import json
import os
import tempfile
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import repro.portable.pytorch as portable

X = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(2))


def loss(x: Tensor) -> None:
    x.square().sum().backward()


def batch_norm() -> None:
    loss(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))(X))


def synchronized() -> None:
    loss(nn.SyncBatchNorm(6)(X))


def synchronized_by_ddp() -> None:
    DistributedDataParallel(nn.Sequential(nn.Linear(6, 5), nn.SyncBatchNorm(5)))


def dropout() -> None:
    loss(functional.dropout(nn.Linear(6, 5)(X), 0.1))


def attention_with_dropout() -> None:
    functional.scaled_dot_product_attention(IMAGES, IMAGES, IMAGES, dropout_p=0.1)


def dropout_in_evaluation() -> None:
    loss(functional.dropout(nn.Linear(6, 5)(X), 0.1, training=False))


def contrast() -> None:
    """Samples that compare each other: no sum over samples, though gradients of weights are made of one."""
    z = nn.Linear(6, 5)(X)
    (z @ z.t()).logsumexp(1).sum().backward()


def made_weight() -> None:
    weight = nn.Parameter(torch.ones(5, 6))
    loss(functional.linear(X, weight * 0.3))


def network_of_positions() -> None:
    """A network whose result is the same for each sample: its gradient is of a sum that was rounded."""
    network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))
    loss(X[:, None] + network(torch.arange(6.0).view(3, 2)))


def penalty() -> None:
    layer = nn.Linear(6, 5)
    (layer(X).square().sum() + layer.weight.square().sum()).backward()


def changed() -> None:
    layer = nn.Linear(6, 5)
    loss(layer(X))
    layer.weight.grad.mul_(0.5)
    loss(layer(X))


def doubles() -> None:
    loss(nn.Linear(6, 5).double()(X.double()))


def autocast() -> None:
    layer = nn.Linear(6, 5)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(X)
    loss(y.float())


def by_hand() -> None:
    """Parameters in products, sums and views; one of no dimension; autograd adds up what is used twice."""
    weight, bias, scale = (nn.Parameter(x) for x in (torch.ones(6, 6), torch.zeros(6), torch.ones(())))
    y = torch.tanh(X @ weight + bias) @ weight.t() * scale + bias
    loss((y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True) + y)


def by_einsum() -> None:
    loss(torch.einsum("bi,oi->bo", X, nn.Parameter(torch.ones(5, 6))))


def multihead_attention() -> None:
    x = X.view(2, 4, 6)
    loss(nn.MultiheadAttention(6, 2, batch_first=True)(x, x, x)[0])


def token() -> None:
    first = nn.Parameter(torch.ones(1, 1, 6))
    loss(nn.Linear(6, 5)(torch.cat([first.expand(2, -1, -1), X.view(2, 4, 6)], 1)))


def checkpoint() -> None:
    layer = nn.Sequential(nn.Linear(6, 5), nn.GELU())
    loss(torch.utils.checkpoint.checkpoint(layer, X, use_reentrant=False))


def gradient_only() -> None:
    layer = nn.Linear(6, 5)
    torch.autograd.grad(layer(X).sum(), layer.weight)


REFUSED = (
    batch_norm,
    synchronized,
    synchronized_by_ddp,
    dropout,
    attention_with_dropout,
    contrast,
    made_weight,
    network_of_positions,
    penalty,
    changed,
    doubles,
    autocast,
)
TAKEN = (
    dropout_in_evaluation,
    by_hand,
    by_einsum,
    multihead_attention,
    token,
    checkpoint,
    gradient_only,
)


def said(program: Callable[[], None]) -> str:
    try:
        program()
    except portable.RefusedError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    portable.enable(elastic=True)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        refused = {each.__name__: said(each) for each in REFUSED}
        dist.destroy_process_group()
    print(json.dumps({"refused": refused, "taken": [said(each) for each in TAKEN]}))
