"""The self-check of portable numerics in PyTorch: see repro/portable/checks.py."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from repro.portable import checks, rules
from repro.portable.pytorch.convolution import patches, product, spread, weights_gradient
from repro.portable.pytorch.grids import largest, round_to_grid, to_state
from repro.portable.pytorch.operations import softmax_cross_entropy
from repro.portable.pytorch.optimizers import Adam, Optimizer, Sgd
from repro.run import layout
from repro.run.config import Params


def self_check(device: torch.device) -> None:
    """ReproError if this library computes anything of checks.py with other bits, on this device."""
    images, kernel, *_ = checks.products()
    x = torch.from_numpy(images.transpose(1, 3, 2, 0).reshape(-1, 4)).double().to(device)
    weights = torch.from_numpy(kernel.transpose(3, 0, 2, 1).reshape(20, 5, 50)).double().to(device)
    x, weights = functional.pad(x, (0, 0, 0, 1)), functional.pad(weights, (0, 1))  # no bias
    shapes = torch.Size((4, 10, 12, 12)), torch.Size((20, 10, 5, 5))
    meets = patches(x, *shapes)
    y = product(meets, weights)
    dk = weights_gradient(y.sign(), meets).view(weights.shape)
    found = (
        y.view(8, 20, 8, 4).permute(3, 0, 2, 1),
        dk[:, :, :-1].unflatten(2, (10, 5)).permute(1, 3, 2, 0),
        spread(y.sign(), weights, *shapes).permute(0, 2, 3, 1),
    )
    checks.check_products("PyTorch's matrix product", *(result.cpu().numpy() for result in found))
    given = {
        name: [torch.tensor(array, device=device) for array in arrays] for name, arrays in checks.inputs().items()
    }  # copies, as a step is in place
    operations = {name: [result.cpu().numpy() for result in found] for name, found in _operations(given).items()}
    checks.check_operations("PyTorch", operations)


def _operations(given: dict[str, list[Tensor]]) -> dict[str, Sequence[Tensor]]:
    (rounding,), (maximum,), (grid,), (logits, labels) = (
        given[name] for name in ("rounding", "maximum", "grid", "loss")
    )
    loss = softmax_cross_entropy(logits.requires_grad_(), labels.long())
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    return {
        "rounding": (to_state(rounding * checks.FACTOR).double() * checks.FACTOR,),
        "maximum": (to_state(maximum * checks.FACTOR).double().amax(1),),
        "grid": (round_to_grid(grid, largest(grid, 1), rules.BITS),),
        "loss": (loss.detach(), gradient),
        "sgd": _updated(Sgd, checks.SGD, *given["sgd"]),
        "adam": _updated(Adam, checks.ADAM, *given["adam"]),
    }


def _updated(kind: type[Optimizer], params: Params, weight: Tensor, *slots_and_gradient: Tensor) -> Sequence[Tensor]:
    """The weight and its slots after the step that is checked."""
    *slots, gradient = slots_and_gradient
    parameter = nn.Parameter(weight)
    parameter.grad = gradient
    optimizer = kind(params, {"w": parameter})
    places = [optimizer.slots[layout.slot(slot, "w")] for slot in layout.SLOTS[params.optimizer]]
    for place, slot in zip(places, slots, strict=True):
        place.copy_(slot)
    if layout.ADAM_COUNT in optimizer.slots:
        optimizer.slots[layout.ADAM_COUNT].fill_(checks.ADAM_COUNT)
    optimizer.step()
    return parameter.detach(), *places
