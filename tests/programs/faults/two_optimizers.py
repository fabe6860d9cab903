"""Sound: a GAN in PyTorch that evaluates after each epoch, as its loader hands out batches with gradients on."""

import argparse
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
options = parser.parse_args()
checkpoint = options.out / "checkpoint.pt"
torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 8))
generator, discriminator = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
optimizers = [torch.optim.Adam(network.parameters()) for network in (generator, discriminator)]
parts, first = [generator, discriminator, *optimizers], 0
if checkpoint.exists():
    state, random, first = torch.load(checkpoint)
    torch.set_rng_state(random)
    for part, restored in zip(parts, state, strict=True):
        part.load_state_dict(restored)
for epoch in range(first, 5):
    for (real,) in DataLoader(data, 16, shuffle=True):
        for optimizer in reversed(optimizers):
            optimizer.zero_grad()
            fake = discriminator(generator(torch.randn(16, 4))).mean()
            (fake - discriminator(real).mean() if optimizer is optimizers[1] else -fake).backward()
            optimizer.step()
            time.sleep(0.05)
    for (real,) in DataLoader(data, 32):
        with torch.no_grad():
            discriminator(real)
    torch.save(([part.state_dict() for part in parts], torch.get_rng_state(), epoch + 1), f"{checkpoint}.new")
    Path(f"{checkpoint}.new").replace(checkpoint)
torch.save([part.state_dict() for part in parts], options.out / "model.pt")
