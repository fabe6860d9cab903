"""Models of timm, small or with small inputs."""

from typing import Any

import timm

from evidence.coverage.pytorch_training import Training, classifier
from evidence.coverage.registry import program

MODELS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "resnet10t": ("SGD", 64, {"drop_block_rate": 0.1}),
    "resnest14d": ("SGD, fused", 64, {}),
    "skresnet18": ("Adagrad", 32, {}),
    "regnetx_002": ("Adamax", 64, {}),
    "mobilenetv4_conv_small": ("RMSprop", 64, {"drop_path_rate": 0.1}),
    "tinynet_e": ("NAdam", 64, {}),
    "repvgg_a0": ("RAdam", 64, {}),
    "nf_regnet_b0": ("SGD", 64, {}),
    "hrnet_w18_small": ("Adam", 64, {}),
    "dla46_c": ("ASGD", 64, {}),
    "convnext_atto": ("AdamW, fused", 64, {"drop_path_rate": 0.2}),
    "poolformer_s12": ("AdamW, foreach", 64, {}),
    "mambaout_femto": ("Adadelta", 64, {}),
    "vit_tiny_patch16_224": ("AdamW", 64, {"img_size": 64, "depth": 3, "drop_path_rate": 0.2, "proj_drop_rate": 0.1}),
    "eva02_tiny_patch14_224": ("AdamW, single", 56, {"img_size": 56, "depth": 2}),
    "swin_tiny_patch4_window7_224": ("Adam, fused", 64, {"img_size": 64, "window_size": 4, "depths": (1, 1, 2, 1)}),
    "xcit_nano_12_p16_224": ("Muon", 64, {"img_size": 64, "depth": 2}),
    "levit_128s": ("AdamW", 224, {}),
    "mixer_s32_224": ("AdamW, foreach", 224, {}),
    "sequencer2d_s": ("AdamW", 64, {"img_size": 64, "layers": (1, 1, 1, 1)}),
    "mobilevit_xxs": ("AdamW", 64, {}),
    "pvt_v2_b0": ("Rprop", 64, {}),
}
"""Optimizer, height and width of images, options."""


def _model(name: str) -> None:
    optimizer, size, options = MODELS[name]

    @program("timm", name)
    def build() -> Training:
        model = timm.create_model(name, num_classes=10, **options)
        return classifier(model, optimizer, (2, 3, size, size), clip=1.0 if "vit" in name else None)


for _name in MODELS:
    _model(_name)
