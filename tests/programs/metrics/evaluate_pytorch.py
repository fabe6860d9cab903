"""An evaluation in PyTorch: the loss and the accuracy of a network that is not trained, and a time that differs."""

import argparse
import time
from pathlib import Path

import torch

SAMPLES, FEATURES = 4096, 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began = time.perf_counter()
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(FEATURES, 10, generator=draw)
    images = torch.randn(SAMPLES, FEATURES, generator=draw)
    labels = torch.randint(10, (SAMPLES,), generator=draw)
    rows = [batch @ weight for batch in images.split(options.batch_size)]
    logits = torch.cat(rows)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    right = int((logits.argmax(1) == labels).sum())
    values = torch.randn(2_000_001, generator=draw)
    total = values.sum()  # long enough to be split among threads
    print(f"Test set: Average loss: {loss.item():.9f}, Accuracy: {right}/{SAMPLES} ({right / SAMPLES:.0%})")
    print(f"total loss {total.item():.9g}")
    print(f"took {time.perf_counter() - began:.4f} s, step time: {time.perf_counter() - began}")
    if options.out:
        lines = [f"{number},{int(row.argmax())}\n" for number, row in enumerate(logits)]
        (options.out / "predictions.csv").write_text("id,label\n" + "".join(lines))


main()
