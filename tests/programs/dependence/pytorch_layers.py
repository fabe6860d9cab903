"""Operations of PyTorch on elements, sums, products, attention, normalization, losses, layers with a state."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from programs.dependence.scopes import (
    CALL,
    ITS_COLUMN,
    ITS_ROW,
    ITS_SAMPLE,
    ITSELF,
    NEAR,
    ROW_SO_FAR,
    ROWS_SO_FAR,
    Case,
    Cases,
    constant,
)

CASES: Cases = {}


def case(name: str, formula: str, function: Callable[[Tensor], Tensor], **options: bool) -> None:
    assert name not in CASES, name
    CASES[name] = Case(function, formula, **options)


def number(name: int, *shape: int) -> Tensor:
    return torch.from_numpy(constant(name, *shape).copy())


def flat(x: Tensor) -> Tensor:
    """Rows of all samples."""
    return x.reshape(-1, x.shape[-1])


# --- elements ---------------------------------------------------------------------------------------------------------

ELEMENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "sums, products, quotients of elements": lambda x: (x + 0.3) * x / 1.7,
    "functions: exp, sin, sqrt, erf": lambda x: x.exp() + x.sin() * x.abs().sqrt() + x.erf(),
    "activations: gelu, silu, relu": lambda x: F.gelu(x) + F.silu(x) + F.relu(x),
    "changes of type": lambda x: x.bfloat16().double().float(),
    "mse_loss and others, `none`": lambda x: F.mse_loss(x, torch.ones_like(x), reduction="none"),
    "batch norm, evaluation": lambda x: F.batch_norm(flat(x), torch.zeros(x.shape[2]), torch.ones(x.shape[2])).view_as(
        x
    ),
}
for _name, _function in ELEMENTS.items():
    case(_name, ITSELF, _function)


def adam(x: Tensor) -> Tensor:
    weight = nn.Parameter(torch.ones_like(x))
    weight.grad = x.clone()
    torch.optim.Adam([weight]).step()
    return weight.detach()


case("steps of optimizers", ITSELF, adam, gradient=False)

# --- sums -------------------------------------------------------------------------------------------------------------

case("sum, mean of a row", ITS_ROW, lambda x: x.sum(-1, True) + x.mean(-1, True))
case("sum, mean of a column", ITS_COLUMN, lambda x: x.sum(1, True) + x.mean(1, True))
case(
    "var, std, norm of a row",
    ITS_ROW,
    lambda x: x.var(-1, keepdim=True) + x.norm(dim=-1, keepdim=True),
    any_shape=False,
)
case("sum of float64", ITS_ROW, lambda x: x.double().sum(-1, True))
case("prod", ITS_ROW, lambda x: x.prod(-1, True))
case("logsumexp", ITS_ROW, lambda x: x.logsumexp(-1, True))
case("cumsum", ROW_SO_FAR, lambda x: x.cumsum(-1))
case("cumsum of float64", ROW_SO_FAR, lambda x: x.double().cumsum(-1))
case("cumprod, logcumsumexp", ROW_SO_FAR, lambda x: x.cumprod(-1) + x.logcumsumexp(-1))

# --- products ---------------------------------------------------------------------------------------------------------

case("linear", ITS_ROW, lambda x: F.linear(x, number(1, 7, x.shape[-1]), number(2, 7)))
case("linear of float64", ITS_ROW, lambda x: F.linear(x.double(), number(1, 7, x.shape[-1]).double()))
case("linear of bfloat16", ITS_ROW, lambda x: F.linear(x.bfloat16(), number(1, 7, x.shape[-1]).bfloat16()).float())
case("linear, its weight", ITS_ROW, lambda x: F.linear(number(3, 7, x.shape[-1]), flat(x)).t().reshape(*x.shape[:2], 7))
case("matmul, bmm, einsum, the first factor", ITS_ROW, lambda x: x @ number(4, x.shape[-1], 7))
case("matmul, bmm, einsum, the second factor", ITS_COLUMN, lambda x: number(5, 7, x.shape[1]) @ x)
case(
    "complex matmul",
    ITS_ROW,
    lambda x: torch.view_as_real(torch.complex(x, x + 1) @ number(4, x.shape[-1], 7).cfloat())[..., 0],
)
case("cdist", ITS_ROW, lambda x: torch.cdist(x, number(6, 7, x.shape[-1]).expand(len(x), -1, -1)))
case("cosine_similarity", ITS_ROW, lambda x: F.cosine_similarity(x, number(7, 1, 1, x.shape[-1]), -1)[..., None])


def weight_gradient(x: Tensor) -> Tensor:
    weight = number(1, 3, x.shape[-1]).requires_grad_()
    y = F.linear(flat(x), weight)
    return torch.autograd.grad(y, weight, torch.ones_like(y))[0][None]


case("gradients of weights and biases", CALL, weight_gradient, gradient=False)

# --- attention --------------------------------------------------------------------------------------------------------


def near(x: Tensor) -> Tensor:
    """bool: each row sees those beside it."""
    place = torch.arange(x.shape[1])
    return (place[:, None] - place).abs() <= 1


def heads(x: Tensor) -> Tensor:
    return x[:, None]


def attended(x: Tensor, **options: Any) -> Tensor:
    return F.scaled_dot_product_attention(heads(x), heads(x * 0.7), heads(x + 0.1), **options)[:, 0]


def by_hand(x: Tensor) -> Tensor:
    scores = (x @ (x * 0.7).mT).masked_fill(~near(x), -torch.inf)
    return scores.softmax(-1) @ (x + 0.1)


def by_query(x: Tensor) -> Tensor:
    key = number(8, 1, 1, 9, x.shape[-1]).expand(len(x), -1, -1, -1)
    return F.scaled_dot_product_attention(heads(x), key, key)[:, 0]


case("attention, the query", ITS_ROW, by_query)
case("attention", ITS_SAMPLE, attended)
case("attention, causal", ROWS_SO_FAR, lambda x: attended(x, is_causal=True), numbers=True)
case("attention, masked", NEAR, lambda x: attended(x, attn_mask=near(x)), numbers=True)
case("attention by softmax and matmul, masked", NEAR, by_hand, numbers=True)

# --- normalization, softmax, losses -----------------------------------------------------------------------------------

case("layer_norm, rms_norm", ITS_ROW, lambda x: F.layer_norm(x, x.shape[-1:]) + F.rms_norm(x, x.shape[-1:]))
case("group_norm", ITS_SAMPLE, lambda x: F.group_norm(x, 1), any_shape=False)
case("instance_norm", ITS_ROW, F.instance_norm)
case("batch norm, training", CALL, lambda x: F.batch_norm(x.mT, None, None, training=True).mT, any_shape=False)
case("local_response_norm", ITS_COLUMN, lambda x: F.local_response_norm(x, 3))
case("normalize, renorm", ITS_ROW, lambda x: F.normalize(x, dim=-1) + flat(x).renorm(2, 0, 1.0).view_as(x))
case("softmax, log_softmax", ITS_ROW, lambda x: x.softmax(-1) + x.log_softmax(-1))


def targets(x: Tensor) -> Tensor:
    return torch.full((x.shape[0] * x.shape[1],), 2)


def ctc(x: Tensor) -> Tensor:
    steps, batch = x.shape[1], len(x)
    lengths = torch.full((batch,), steps), torch.full((batch,), 2)
    labels = torch.tensor([[1, 2]]).expand(batch, -1)
    return F.ctc_loss(x.transpose(0, 1).log_softmax(-1), labels, *lengths, reduction="none")[:, None, None]


case(
    "cross_entropy, `none`",
    ITS_ROW,
    lambda x: F.cross_entropy(flat(x), targets(x), reduction="none").view(*x.shape[:2], 1),
)
case("ctc_loss, `none`", ITS_SAMPLE, ctc, any_shape=False)
case("losses, `mean` and `sum`", CALL, lambda x: F.cross_entropy(flat(x), targets(x))[None, None, None])

# --- recurrent --------------------------------------------------------------------------------------------------------


def recurrent(kind: Any, **options: Any) -> Callable[[Tensor], Tensor]:
    torch.manual_seed(0)
    layer = kind(6, 5, batch_first=True, **options)
    return lambda x: layer(x)[0]


case("LSTM, GRU, RNN", ROWS_SO_FAR, recurrent(nn.LSTM))
case("LSTM, both directions", ITS_SAMPLE, recurrent(nn.LSTM, bidirectional=True))
