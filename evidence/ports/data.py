"""Write what the two programs of a pair share: the data, and the initial weights as a PyTorch checkpoint lays them out.

    python data.py FOLDER

FOLDER gets one file for each model, such as cnn.npz. A name with a dot, as `conv1.weight`, is a weight: float32, of
a convolution [out, in, height, width], of a dense layer [out, in]. Everything else is data, of three batches.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
STEPS = 3


def weight(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Draws weights float32 that keep the size of what they are multiplied with."""
    return (generator.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def near(generator: np.random.Generator, value: float, *shape: int) -> np.ndarray:
    """Draws numbers float32 near a value, so that no scale is 1 and no bias is 0."""
    return (value + 0.1 * generator.normal(size=shape)).astype(np.float32)


def norm(generator: np.random.Generator, name: str, size: int) -> Arrays:
    return {f"{name}.weight": near(generator, 1, size), f"{name}.bias": near(generator, 0, size)}


def dense(generator: np.random.Generator, name: str, inputs: int, outputs: int) -> Arrays:
    return {f"{name}.weight": weight(generator, outputs, inputs), f"{name}.bias": near(generator, 0, outputs)}


def cnn(generator: np.random.Generator) -> Arrays:
    return {
        "images": generator.integers(256, size=(STEPS * 8, 12, 12, 3), dtype=np.uint8),
        "labels": generator.integers(10, size=STEPS * 8, dtype=np.int32),
        "conv1.weight": weight(generator, 8, 3, 3, 3),
        **norm(generator, "norm1", 8),
        "conv2.weight": weight(generator, 16, 8, 3, 3),
        **norm(generator, "norm2", 16),
        **dense(generator, "dense", 16 * 6 * 6, 10),
    }


def mlp(generator: np.random.Generator) -> Arrays:
    rows = STEPS * 16
    return {
        "rows": generator.normal(size=(rows, 32)).astype(np.float32),
        "labels": generator.integers(10, size=rows, dtype=np.int32),
        "order": generator.permutation(rows),
        "keep": (generator.random((rows, 64)) < 0.75).astype(np.float32),
        **dense(generator, "dense1", 32, 64),
        **dense(generator, "dense2", 64, 64),
        **dense(generator, "dense3", 64, 10),
    }


def transformer(generator: np.random.Generator) -> Arrays:
    lengths = generator.integers(6, 17, size=(STEPS * 4, 1))
    arrays = {
        "tokens": generator.integers(40, size=(STEPS * 4, 17), dtype=np.int32),
        "mask": (np.arange(16) < lengths).astype(np.float32),
        "embedding.weight": near(generator, 0, 40, 32) * 10,
        **norm(generator, "norm", 32),
        "head.weight": weight(generator, 40, 32),
    }
    for block in ("blocks.0", "blocks.1"):
        arrays |= norm(generator, f"{block}.norm1", 32) | norm(generator, f"{block}.norm2", 32)
        arrays[f"{block}.attention.qkv.weight"] = weight(generator, 96, 32)
        arrays[f"{block}.attention.out.weight"] = weight(generator, 32, 32)
        arrays |= dense(generator, f"{block}.mlp.fc1", 32, 128) | dense(generator, f"{block}.mlp.fc2", 128, 32)
    return arrays


def lstm(generator: np.random.Generator) -> Arrays:
    """Four gates, as PyTorch has them: input, forget, cell, output. One bias; PyTorch's second is zero."""
    return {
        "series": generator.normal(size=(STEPS * 8, 10, 6)).astype(np.float32),
        "labels": generator.integers(3, size=STEPS * 8, dtype=np.int32),
        "lstm.weight_ih_l0": weight(generator, 4 * 12, 6),
        "lstm.weight_hh_l0": weight(generator, 4 * 12, 12),
        "lstm.bias_ih_l0": near(generator, 0, 4 * 12),
        **dense(generator, "dense", 12, 3),
    }


def resize(generator: np.random.Generator) -> Arrays:
    return {
        "images": generator.normal(size=(STEPS * 4, 6, 6, 3)).astype(np.float32),
        "targets": generator.normal(size=(STEPS * 4, 12, 12, 2)).astype(np.float32),
        "conv1.weight": weight(generator, 8, 3, 3, 3),
        "conv1.bias": near(generator, 0, 8),
        "conv2.weight": weight(generator, 2, 8, 1, 1),
        "conv2.bias": near(generator, 0, 2),
    }


def gpt2(generator: np.random.Generator) -> Arrays:
    """GPT-2 of transformers, which stores dense layers as [in, out]."""

    def conv1d(name: str, inputs: int, outputs: int) -> Arrays:
        return {f"{name}.weight": weight(generator, outputs, inputs).T, f"{name}.bias": near(generator, 0, outputs)}

    arrays = {
        "tokens": generator.integers(64, size=(STEPS * 4, 16), dtype=np.int32),
        "transformer.wte.weight": near(generator, 0, 64, 32) * 2,
        "transformer.wpe.weight": near(generator, 0, 16, 32),
        **norm(generator, "transformer.ln_f", 32),
    }
    for block in ("transformer.h.0", "transformer.h.1"):
        arrays |= norm(generator, f"{block}.ln_1", 32) | norm(generator, f"{block}.ln_2", 32)
        arrays |= conv1d(f"{block}.attn.c_attn", 32, 96) | conv1d(f"{block}.attn.c_proj", 32, 32)
        arrays |= conv1d(f"{block}.mlp.c_fc", 32, 128) | conv1d(f"{block}.mlp.c_proj", 128, 32)
    return arrays


def bert(generator: np.random.Generator) -> Arrays:
    """BERT of transformers with a classifier."""
    mask = (np.arange(12) < generator.integers(4, 13, size=(STEPS * 4, 1))).astype(np.int32)
    embeddings, arrays = "bert.embeddings", {}
    for name, rows in (("word_embeddings", 64), ("position_embeddings", 12), ("token_type_embeddings", 2)):
        arrays[f"{embeddings}.{name}.weight"] = near(generator, 0, rows, 32)
    arrays |= norm(generator, f"{embeddings}.LayerNorm", 32)
    for layer in ("bert.encoder.layer.0", "bert.encoder.layer.1"):
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            arrays |= dense(generator, f"{layer}.attention.{name}", 32, 32)
        arrays |= norm(generator, f"{layer}.attention.output.LayerNorm", 32)
        arrays |= dense(generator, f"{layer}.intermediate.dense", 32, 64)
        arrays |= dense(generator, f"{layer}.output.dense", 64, 32) | norm(generator, f"{layer}.output.LayerNorm", 32)
    return {
        # 0 is padding, whose embedding transformers never trains.
        "tokens": generator.integers(1, 64, size=(STEPS * 4, 12), dtype=np.int32) * mask,
        "segments": generator.integers(2, size=(STEPS * 4, 12), dtype=np.int32),
        "mask": mask,
        "labels": generator.integers(3, size=STEPS * 4, dtype=np.int32),
        **arrays,
        **dense(generator, "bert.pooler.dense", 32, 32),
        **dense(generator, "classifier", 32, 3),
    }


def mobilenet(generator: np.random.Generator) -> Arrays:
    """MobileNetV2 of a width of 0.35, with timm's names, in the order in which both libraries list their layers."""
    arrays: Arrays = {}

    def conv(name: str, norm_name: str, *shape: int) -> None:
        arrays[f"{name}.weight"] = weight(generator, *shape)
        arrays.update(norm(generator, norm_name, shape[0]))
        arrays[f"{norm_name}.running_mean"] = near(generator, 0, shape[0])
        arrays[f"{norm_name}.running_var"] = near(generator, 1, shape[0])

    conv("conv_stem", "bn1", 16, 3, 3, 3)
    conv("blocks.0.0.conv_dw", "blocks.0.0.bn1", 16, 1, 3, 3)
    conv("blocks.0.0.conv_pw", "blocks.0.0.bn2", 8, 16, 1, 1)
    inputs = 8
    for stage, (outputs, count) in enumerate(((8, 2), (16, 3), (24, 4), (32, 3), (56, 3), (112, 1)), 1):
        for number in range(count):
            block, wide = f"blocks.{stage}.{number}", 6 * inputs
            conv(f"{block}.conv_pw", f"{block}.bn1", wide, inputs, 1, 1)
            conv(f"{block}.conv_dw", f"{block}.bn2", wide, 1, 3, 3)
            conv(f"{block}.conv_pwl", f"{block}.bn3", outputs, wide, 1, 1)
            inputs = outputs
    conv("conv_head", "bn2", 1280, 112, 1, 1)
    return {
        "images": generator.normal(size=(STEPS * 4, 64, 64, 3)).astype(np.float32),
        "labels": generator.integers(10, size=STEPS * 4, dtype=np.int32),
        **arrays,
        **dense(generator, "classifier", 1280, 10),
    }


def stem(generator: np.random.Generator) -> Arrays:
    """The beginning of a ResNet, with torchvision's names."""
    return {
        "images": generator.normal(size=(STEPS * 4, 32, 32, 3)).astype(np.float32),
        "labels": generator.integers(10, size=STEPS * 4, dtype=np.int32),
        "conv1.weight": weight(generator, 8, 3, 7, 7),
        **norm(generator, "bn1", 8),
        "layer2.conv1.weight": weight(generator, 16, 8, 3, 3),
        **norm(generator, "layer2.bn1", 16),
        "layer2.conv2.weight": weight(generator, 16, 16, 3, 3),
        **norm(generator, "layer2.bn2", 16),
        "layer2.downsample.weight": weight(generator, 16, 8, 1, 1),
        **dense(generator, "fc", 16, 10),
    }


def sentences(generator: np.random.Generator) -> Arrays:
    return {
        "tokens": generator.integers(200, size=(STEPS * 8, 12), dtype=np.int32),
        "labels": generator.integers(10, size=STEPS * 8, dtype=np.int32),
    }


def gru(generator: np.random.Generator) -> Arrays:
    """Three gates, as PyTorch has them: reset, update, new."""
    arrays = {}
    for layer, inputs in ((0, 6), (1, 12)):
        arrays[f"gru.weight_ih_l{layer}"] = weight(generator, 3 * 12, inputs)
        arrays[f"gru.weight_hh_l{layer}"] = weight(generator, 3 * 12, 12)
        arrays[f"gru.bias_ih_l{layer}"] = near(generator, 0, 3 * 12)
        arrays[f"gru.bias_hh_l{layer}"] = near(generator, 0, 3 * 12)
    return {
        "series": generator.normal(size=(STEPS * 8, 10, 6)).astype(np.float32),
        "labels": generator.integers(3, size=STEPS * 8, dtype=np.int32),
        **arrays,
        **dense(generator, "dense", 12, 3),
    }


MODELS: tuple[Callable[[np.random.Generator], Arrays], ...] = (
    cnn,
    mlp,
    transformer,
    lstm,
    resize,
    gpt2,
    bert,
    mobilenet,
    stem,
    sentences,
    gru,
)


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, model in enumerate(MODELS):
        arrays: dict[str, Any] = dict(model(np.random.default_rng(seed)))
        np.savez(folder / f"{model.__name__}.npz", **arrays)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
