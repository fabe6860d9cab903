"""The optimizers of mnist_pytorch.py: the functions of torch.optim, without its classes.

Those import PyTorch's compiler first, which takes long, and do more at every step.
"""

from torch import Tensor, nn
from torch.optim.adadelta import adadelta
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from repro.portable.pytorch.optimizers import Optimizer
from repro.run import layout
from repro.run.config import Params


class Sgd(Optimizer):
    """Fused: one call updates all weights."""

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        lr, momentum = self.params.learning_rate, self.params.momentum
        sgd(
            weights, gradients, *slots, lr=lr, momentum=momentum,
            dampening=0, weight_decay=0, nesterov=False, maximize=False, fused=True,
        )  # fmt: skip


class Adam(Optimizer):
    """Fused: one call updates all weights."""

    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        counts = [self.slots[layout.ADAM_COUNT].clone() for _ in weights]  # the function counts for each weight
        adam(
            weights, gradients, *slots, [], counts, lr=self.params.learning_rate, beta1=0.9, beta2=0.999, eps=1e-8,
            amsgrad=False, weight_decay=0, maximize=False, fused=True,
        )  # fmt: skip
        self.slots[layout.ADAM_COUNT] += 1


class Adadelta(Optimizer):
    def update(self, weights: list[nn.Parameter], gradients: list[Tensor], *slots: list[Tensor]) -> None:
        counts = [weights[0].new_zeros(()) for _ in weights]  # for nothing
        adadelta(
            weights, gradients, *slots, counts, lr=self.params.learning_rate, rho=0.95, eps=1e-7,
            weight_decay=0, maximize=False,
        )  # fmt: skip


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": Sgd, "adam": Adam, "adadelta": Adadelta}


def optimizer(params: Params, weights: dict[str, nn.Parameter]) -> Optimizer:
    """The optimizer that `params.optimizer` names."""
    return OPTIMIZERS[params.optimizer](params, weights)
