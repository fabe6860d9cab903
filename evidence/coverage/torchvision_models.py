"""Models of torchvision, small or with small inputs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torchvision import models
from torchvision.models import detection, optical_flow, segmentation, video

from evidence.coverage.pytorch_training import OPTIMIZERS, Training, classifier
from evidence.coverage.registry import program

CLASSIFIERS: dict[str, tuple[Callable[..., nn.Module], dict[str, Any], str, dict[str, Any]]] = {
    "resnet18": (models.resnet18, {}, "SGD, fused", {"shape": (4, 3, 32, 32)}),
    "resnext50_32x4d": (models.resnext50_32x4d, {}, "RMSprop", {"shape": (2, 3, 32, 32)}),
    "densenet121": (
        models.densenet121,
        {"drop_rate": 0.1, "memory_efficient": True},
        "Adagrad",
        {"shape": (2, 3, 32, 32)},
    ),
    "inception_v3": (
        models.inception_v3,
        {"init_weights": False, "aux_logits": False},
        "SGD",
        {"shape": (2, 3, 96, 96)},
    ),
    "squeezenet1_1": (models.squeezenet1_1, {}, "SGD, single", {}),
    "mobilenet_v2": (models.mobilenet_v2, {}, "RMSprop", {"clip": 1.0}),
    "mobilenet_v3_small": (models.mobilenet_v3_small, {}, "Adadelta", {}),
    "shufflenet_v2_x0_5": (models.shufflenet_v2_x0_5, {}, "NAdam", {}),
    "mnasnet0_5": (models.mnasnet0_5, {}, "RAdam", {}),
    "efficientnet_b0": (models.efficientnet_b0, {"stochastic_depth_prob": 0.5}, "AdamW, fused", {}),
    "regnet_y_400mf": (models.regnet_y_400mf, {}, "Adamax", {}),
}
"""Function, its options, optimizer, options of classifier()."""


def _classifier(name: str) -> None:
    function, options, optimizer, others = CLASSIFIERS[name]
    program("torchvision", name)(lambda: classifier(function(num_classes=10, **options), optimizer, **others))


for _name in CLASSIFIERS:
    _classifier(_name)


@program("torchvision", "googlenet")
def googlenet() -> Training:
    """Two auxiliary losses."""

    def loss(model: nn.Module, batch: Any) -> Tensor:
        out = model(batch[0])
        first, *rest = (F.cross_entropy(each, batch[1], label_smoothing=0.1) for each in out)
        return first + 0.3 * sum(rest)

    model = models.googlenet(num_classes=10, init_weights=False, aux_logits=True)
    return classifier(model, "ASGD", loss=loss)


@program("torchvision", "convnext")
def convnext() -> Training:
    setting = [models.convnext.CNBlockConfig(32, 64, 1), models.convnext.CNBlockConfig(64, None, 2)]
    model = models.ConvNeXt(setting, stochastic_depth_prob=0.3, num_classes=10)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    return classifier(model, "AdamW, foreach", average=average)


@program("torchvision", "vit")
def vit() -> Training:
    model = models.VisionTransformer(
        image_size=64,
        patch_size=16,
        num_layers=2,
        num_heads=4,
        hidden_dim=64,
        mlp_dim=128,
        num_classes=10,
        dropout=0.1,
        attention_dropout=0.1,
    )
    training = classifier(model, "AdamW", clip=1.0)
    training.scheduler = OneCycleLR(training.optimizer, 1e-3, total_steps=10)
    return training


def _swin(block: Any, downsample: Any, optimizer: str) -> Training:
    model = models.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=24,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[4, 4],
        num_classes=10,
        stochastic_depth_prob=0.2,
        block=block,
        downsample_layer=downsample,
    )
    return classifier(model, optimizer)


@program("torchvision", "swin")
def swin() -> Training:
    training = _swin(
        models.swin_transformer.SwinTransformerBlock, models.swin_transformer.PatchMerging, "AdamW, single"
    )
    training.scheduler = CosineAnnealingLR(training.optimizer, 10)
    return training


@program("torchvision", "swin_v2")
def swin_v2() -> Training:
    return _swin(models.swin_transformer.SwinTransformerBlockV2, models.swin_transformer.PatchMergingV2, "Adam, fused")


@program("torchvision", "maxvit")
def maxvit() -> Training:
    model = models.MaxVit(
        input_size=(64, 64),
        stem_channels=16,
        partition_size=4,
        block_channels=[16, 32],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.2,
        num_classes=10,
    )
    return classifier(model, "Adafactor")


# --- other tasks ------------------------------------------------------------------------------------------------------


def _segments(model: nn.Module, optimizer: str, auxiliary: bool) -> Training:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        out = model(batch[0])
        outputs = F.cross_entropy(out["out"], batch[1], ignore_index=4)
        return outputs + 0.5 * F.cross_entropy(out["aux"], batch[1], ignore_index=4) if auxiliary else outputs

    batch = torch.randn(2, 3, 64, 64), torch.randint(5, (2, 64, 64))
    return Training(model, lambda _: batch, OPTIMIZERS[optimizer](list(model.parameters())), loss)


@program("torchvision", "deeplabv3_mobilenet_v3_large")
def deeplab() -> Training:
    options = {"weights_backbone": None, "num_classes": 5, "aux_loss": True}
    return _segments(segmentation.deeplabv3_mobilenet_v3_large(**options), "SGD", auxiliary=True)


@program("torchvision", "lraspp_mobilenet_v3_large")
def lraspp() -> Training:
    options = {"weights_backbone": None, "num_classes": 5}
    return _segments(segmentation.lraspp_mobilenet_v3_large(**options), "Rprop", auxiliary=False)


def _detects(model: nn.Module, optimizer: str) -> Training:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return sum(model(*batch).values())

    boxes = torch.tensor([[5.0, 8.0, 40.0, 50.0], [20.0, 3.0, 60.0, 30.0]])
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2])}, {"boxes": boxes[:1], "labels": torch.tensor([3])}]
    batch = list(torch.rand(2, 3, 64, 64)), targets
    return Training(model, lambda _: batch, OPTIMIZERS[optimizer](list(model.parameters())), loss, clip=10.0)


@program("torchvision", "fasterrcnn_mobilenet_v3_large_320_fpn")
def fasterrcnn() -> Training:
    sizes = {"min_size": 64, "max_size": 96, "weights_backbone": None, "num_classes": 5}
    return _detects(detection.fasterrcnn_mobilenet_v3_large_320_fpn(**sizes), "SGD")


@program("torchvision", "r3d_18")
def r3d() -> Training:
    return classifier(video.r3d_18(num_classes=10), "SGD", (2, 3, 4, 32, 32))


@program("torchvision", "raft_small")
def raft() -> Training:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        flows = model(batch[0], batch[1], num_flow_updates=2)
        return sum(0.8 ** (len(flows) - 1 - i) * (flow - batch[2]).abs().mean() for i, flow in enumerate(flows))

    model = optical_flow.raft_small()
    batch = torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128), torch.randn(1, 2, 128, 128)
    return Training(model, lambda _: batch, OPTIMIZERS["AdamW"](list(model.parameters())), loss, clip=1.0)
