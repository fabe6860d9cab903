"""Models whose modules or functions `convert` refuses, for pytorch_refusals.py."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from repro.errors import UsageError
from repro.portable.library.pytorch import functional


def line(call: Callable[[], object]) -> str:
    """The message of its UsageError."""
    try:
        call()
    except UsageError as error:
        return str(error)
    return "nothing"


class Container(nn.Module):
    """Of one's own."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.dense, self.function = nn.Linear(12, 12), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.dense(x))


class Several(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        return self.parts[1](self.parts[0](x))


class InTurn(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(-1)


class Exempt(portable.Portable, Container):
    pass


MANY = torch.tensor([0, 0])
CALLED: dict[str, Callable[[Tensor], Tensor]] = {
    "portable": lambda x: functional.softmax(functional.gelu(functional.layer_norm(x, 12))),
    "shapes": lambda x: torch.cat(x.flatten().view(6, 24).t().chunk(2, 1), 0)[:, None].squeeze(1),
    "sums": lambda x: x + x * 2 - torch.relu(x) / 4,
    "masks": lambda x: x.masked_fill(torch.ones(12, 12).triu(1).bool(), 0.0)[x[:, 0] > 0],
    "places": lambda x: x + torch.arange(12),
    "integers": lambda x: (x.long() % 3).sum(),
    "softmax": lambda x: x.softmax(-1),
    "matmul": lambda x: x @ x.t(),
    "norm": lambda x: x.norm(),
    "mean": lambda x: x.mean(),
    "tanh": lambda x: x.tanh(),
    "pow": lambda x: x**2,
    "layer_norm": lambda x: nn.functional.layer_norm(x, (12,)),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "alpha": lambda x: torch.add(x, x, alpha=3),
    "third": lambda x: x / 3,
    "scaled": lambda x: x * x[:, :1],
    "expanded": lambda x: x[:, :1].expand(12, 12),
    "rows": lambda x: x[MANY],
    "dropout": lambda x: nn.functional.dropout(x),
    "noise": lambda x: x + torch.randint(3, (12, 12)),
}


def called() -> object:
    """The messages about functions that a forward calls, and the number of hooks that are left."""
    x = torch.randn(12, 12)
    results: dict[str, object] = {}
    for name, function in CALLED.items():
        model = portable.convert(Container(function))
        results[name] = line(lambda: model(x)).partition(": it calls ")[2].partition(", which")[0]  # noqa: B023
    nested = portable.convert(Several(Container(CALLED["tanh"]), Container(CALLED["pow"])))
    results["nested"] = line(lambda: nested(x)).count("pytorch_forwards.py:")
    results["inner"] = line(lambda: nested.parts[1](x)).count("pytorch_forwards.py:")
    results["trusted"] = line(lambda: portable.convert(Exempt(CALLED["tanh"]))(x))
    model = portable.convert(Several(Container(CALLED["sums"]), Container(CALLED["places"])))
    hooks = [hooked(model)]
    for twin in (portable.convert(model), copy.deepcopy(model), model):
        for mode in (True, True, False):
            twin.train(mode)(x)
            hooks.append(hooked(twin))
    results["hooks"] = hooks
    evaluated = portable.convert(Container(lambda x: x if torch.is_grad_enabled() else x.exp()))
    evaluated(x)
    with torch.no_grad():
        results["evaluated"] = line(lambda: evaluated.eval()(x)) != "nothing"
    compiled = torch.compile(portable.convert(Container(CALLED["sums"])), backend="eager")
    results["compiled"] = line(lambda: compiled(x))
    results["modes"] = torch._C._len_torch_dispatch_stack()
    return results


def hooked(model: nn.Module) -> int:
    return sum(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules())


def converted() -> object:
    """The messages about modules that are more than they seem."""

    def sequence(change: Callable[[nn.Sequential], object]) -> nn.Module:
        model = nn.Sequential(nn.Linear(2, 2))
        change(model)
        return model

    hook = lambda *_: None  # noqa: E731
    cases = {
        "forward": sequence(lambda model: setattr(model[0], "forward", hook)),
        "container's hook": sequence(lambda model: model.register_forward_hook(hook)),
        "backward hook": sequence(lambda model: model[0].register_full_backward_hook(hook)),
        "hook before": sequence(lambda model: model.register_full_backward_pre_hook(hook)),
        "weight's hook": sequence(lambda model: model[0].weight.register_hook(hook)),
        "gradient's hook": sequence(lambda model: model[0].bias.register_post_accumulate_grad_hook(hook)),
        "sequence": nn.Sequential(InTurn(nn.Linear(2, 2))),
        "complex": nn.Sequential(nn.Linear(2, 2, dtype=torch.complex64)),
    }
    return {name: line(lambda: portable.convert(model)) for name, model in cases.items()}  # noqa: B023
