"""A loop in PyTorch: a small convolutional network with dropout, AdamW and a schedule, one checkpoint that is written over."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

STEPS, EVERY = 24, 6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    images, labels = torch.randn(96, 1, 14, 14), torch.randint(10, (96,))
    batches = list(DataLoader(TensorDataset(images, labels), batch_size=16))
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(8 * 12 * 12, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    path, step = options.out / "checkpoint.pt", 0
    if options.resume:
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        schedule.load_state_dict(kept["schedule"])
        torch.set_rng_state(kept["generator"])
        step = kept["step"]
    while step < STEPS:
        image, label = batches[step % len(batches)]
        optimizer.zero_grad()
        functional.cross_entropy(model(image), label).backward()
        optimizer.step()
        schedule.step()
        step += 1
        if step % EVERY == 0:
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
            torch.save({**kept, "generator": torch.get_rng_state(), "step": step}, path.with_suffix(".new"))
            path.with_suffix(".new").replace(path)
    torch.save(model.state_dict(), options.out / "model.pt")


if __name__ == "__main__":
    main()
