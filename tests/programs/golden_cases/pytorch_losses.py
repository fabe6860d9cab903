"""Operations of golden/operations.txt that PyTorch alone has: norms, softmax, losses, optimizers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from programs.golden_cases.cases import Case, array, filler, index

CASES: dict[str, Case] = {}
case = filler(CASES)
aten = torch.ops.aten

PLANE, ROW = array(12, 20), array(20)
REAL, POSITIVE, SHARE = array(240, kind="special"), array(240, kind="positive"), array(240, kind="share")
SIGNAL, IMAGES = array(3, 4, 10), array(2, 4, 5, 6)


# --- norms ------------------------------------------------------------------------------------------------------------

case("layer_norm", lambda x, w, b: F.layer_norm(x, (20,), w, b), PLANE, ROW, ROW)
case("layer_norm-plain", lambda x: F.layer_norm(x, (4, 10)), SIGNAL)
case("rms_norm", lambda x, w: F.rms_norm(x, (20,), w), PLANE, ROW)
case("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), IMAGES, array(4), array(4))
case("instance_norm", lambda x: F.instance_norm(x), IMAGES)
case("batch_norm-planes", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), IMAGES, array(4), array(4))
case("batch_norm-rows", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), array(7, 4), array(4), array(4))
case(
    "batch_norm-legit",
    lambda x, w, b: aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
    IMAGES,
    array(4),
    array(4),
    gradient=False,
)
case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), array(5, 4), array(5, 1))


def moving(x: Tensor, mean: Tensor, variance: Tensor) -> list[Tensor]:
    mean, variance, others = mean.clone(), variance.clone(), (mean.clone(), variance.clone())
    y = F.batch_norm(x, mean, variance, training=True, momentum=0.1)
    z = aten._native_batch_norm_legit(x, None, None, *others, True, 0.1, 1e-5)[0]
    return [
        y,
        z,
        mean,
        variance,
        *others,
        aten._native_batch_norm_legit_no_training(x, None, None, *others, 0.1, 1e-5)[0],
    ]


case("batch_norm-moving", moving, IMAGES, array(4), array(4, kind="positive"), gradient=False)

# --- softmax, losses --------------------------------------------------------------------------------------------------

case("softmax-planes", lambda x: F.softmax(x, 1), IMAGES)
case("log_softmax-planes", lambda x: F.log_softmax(x, 1), IMAGES)
case("softmin", lambda x: F.softmin(x, -1), PLANE)
case("safe_softmax", lambda x: aten._safe_softmax(x, -1), PLANE)
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss"):
    for _reduction in ("mean", "sum", "none"):
        case(f"{_name}-{_reduction}", partial(getattr(F, _name), reduction=_reduction), PLANE, PLANE)


def soft_margin(x: Tensor, y: Tensor, reduction: str) -> Tensor:
    return F.soft_margin_loss(x, y.detach(), reduction=reduction)


for _reduction in ("mean", "none"):
    case(f"soft_margin_loss-{_reduction}", partial(soft_margin, reduction=_reduction), PLANE, PLANE)
    case(f"binary_cross_entropy-{_reduction}", partial(F.binary_cross_entropy, reduction=_reduction), SHARE, SHARE)
    case(f"logits-{_reduction}", partial(F.binary_cross_entropy_with_logits, reduction=_reduction), PLANE, PLANE)
    case(
        f"kl_div-{_reduction}",
        partial(F.kl_div, reduction=_reduction.replace("mean", "batchmean")),
        PLANE,
        array(12, 20, kind="share"),
    )
    case(f"nll_loss-{_reduction}", partial(F.nll_loss, reduction=_reduction), PLANE, index(20, 12))
    case(
        f"cross_entropy-{_reduction}-smoothed",
        partial(F.cross_entropy, reduction=_reduction, label_smoothing=0.1),
        PLANE,
        index(20, 12),
    )
    case(f"multi_margin_loss-{_reduction}", partial(F.multi_margin_loss, reduction=_reduction), PLANE, index(20, 12))
    case(
        f"multilabel_margin_loss-{_reduction}",
        lambda x, i, r=_reduction: F.multilabel_margin_loss(x, i, reduction=r),
        PLANE,
        index(20, 12, 20),
    )
case("nll_loss-planes", lambda x, i, w: F.nll_loss(x, i, w.detach()), IMAGES, index(4, 2, 5, 6), array(4, kind="share"))
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b), PLANE, PLANE)
case("triplet_margin_loss", F.triplet_margin_loss, PLANE, PLANE, PLANE)
case("gaussian_nll_loss", F.gaussian_nll_loss, PLANE, PLANE, array(12, 20, kind="positive"))
case(
    "losses-out",
    lambda a, b: loss_gradients(a, b),
    array(12, 20, kind="share"),
    array(12, 20, kind="share"),
    gradient=False,
)


def loss_gradients(a: Tensor, b: Tensor) -> list[Tensor]:
    """By out=."""

    def given(function: Any, *arguments: Any) -> Tensor:
        return function(*arguments, grad_input=torch.empty_like(a))

    found = [given(getattr(aten, f"{name}_backward"), a, a, b, 1) for name in ("mse_loss", "soft_margin_loss")]
    found += [
        given(aten.smooth_l1_loss_backward, a, a, b, 1, 0.5),
        given(aten.binary_cross_entropy_backward, a, a, b, None, 1),
    ]
    found += [given(aten.elu_backward, a, 1, 1, 1, False, b), given(aten.softplus_backward, a, b, 1, 20)]
    found += [given(aten.hardsigmoid_backward, a, b), given(aten.log_sigmoid_backward, a, b, torch.empty(0))]
    found.append(aten.glu_backward(a[:, :10], b, 1, grad_input=torch.empty_like(a)))
    return [*found, aten.log_sigmoid_forward(a, output=torch.empty_like(a), buffer=torch.empty_like(a))[0]]


def ctc(x: Tensor, labels: Tensor, lengths: Any) -> Tensor:
    return F.ctc_loss(F.log_softmax(x, -1), labels + 1, *lengths, reduction="none")


_CTC = array(9, 3, 6), index(5, 3, 4)
_LENGTHS = torch.tensor([9, 8, 7]), torch.tensor([4, 3, 0])
case("ctc_loss", lambda x, i: ctc(x, i, _LENGTHS), *_CTC)
case("ctc_loss-tensors", lambda x, i: aten._ctc_loss.Tensor(F.log_softmax(x, -1), i + 1, *_LENGTHS)[0], *_CTC)
case("ctc_loss-numbers", lambda x, i: ctc(x, i, ((9, 8, 7), (4, 3, 0))), *_CTC)

# --- optimizers -------------------------------------------------------------------------------------------------------

ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}
SGD: dict[str, Any] = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.5, "nesterov": False, "maximize": False}
ADAGRAD: dict[str, Any] = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}


def fused(name: str, slots: int, **options: Any) -> Callable[..., list[Tensor]]:
    """Weights and state after a fused step, of a rate that is a number and one that is a tensor."""

    def step(*given: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        for rate in (0.3, torch.tensor(0.3)):
            arrays = [[each.clone()] for each in given]
            counts = [] if "sgd" in name else [[torch.tensor(3.0)]]
            empty: list[list[Tensor]] = [[]] if "adam" in name and slots == 2 else []
            getattr(torch, name)(*arrays, *empty, *counts, lr=rate, **options)
            found += [each for (each,) in arrays]
        return found

    return step


_STATE = array(12, 20, kind="positive")
for _name in ("adam", "adamw"):
    case(
        f"fused-{_name}",
        fused(f"_fused_{_name}_", 2, amsgrad=False, **ADAM),
        PLANE,
        PLANE,
        PLANE,
        _STATE,
        gradient=False,
    )
    case(
        f"fused-{_name}-amsgrad",
        fused(f"_fused_{_name}_", 3, amsgrad=True, **ADAM),
        PLANE,
        PLANE,
        PLANE,
        _STATE,
        _STATE,
        gradient=False,
    )
case("fused-sgd", fused("_fused_sgd_", 1, is_first_step=False, **SGD), PLANE, PLANE, PLANE, gradient=False)
case("fused-adagrad", fused("_fused_adagrad_", 1, **ADAGRAD), PLANE, PLANE, _STATE, gradient=False)
for _kind in ("Adadelta", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"):

    def steps(weight: Tensor, gradient: Tensor, kind: str = _kind) -> list[Tensor]:
        """Two steps, by the loop over tensors and by lists of them."""
        found = []
        for foreach in (False, True):
            x = weight.clone().requires_grad_()
            optimizer = getattr(torch.optim, kind)([x], lr=0.1, foreach=foreach)
            for factor in (1.0, 0.5):
                x.grad = gradient * factor
                optimizer.step()
            found.append(x.detach())
        return found

    case(f"optimizer-{_kind.lower()}", steps, PLANE, PLANE, gradient=False)
