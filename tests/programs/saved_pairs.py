"""Pairs of files as a framework writes them, in the folders `a` and `b`: `python saved_pairs.py FRAMEWORK FOLDER`."""

import sys
from pathlib import Path


def pytorch(folder: Path, other: bool) -> None:
    import numpy as np
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    whole = torch.arange(12.0).reshape(3, 4)
    torch.save(model.state_dict(), folder / "equal.pt")
    torch.save({"model": model.state_dict(), "epoch": 3 + other}, folder / "epoch.pt")
    torch.save({"scores": np.arange(3.0) + other}, folder / "numpy.pt")
    torch.save({"row": whole[1 + other], "whole": whole}, folder / "view.pt")
    torch.save({"transposed": whole[:, : 3 - other].t()}, folder / "strided.pt")
    if other:
        optimizer.state[model[0].weight]["exp_avg"][0, 0] += 1
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "momentum.pt")
    with torch.no_grad():
        model[2].bias += other
    torch.save(model.state_dict(), folder / "weights.pt")
    torch.save(model, folder / "module.pt")


def jax(folder: Path, other: bool) -> None:
    import jax.numpy as jnp
    from flax import serialization

    params = {"w": jnp.ones((3, 4)) + other, "b": jnp.zeros(4)}
    (folder / "m.msgpack").write_bytes(serialization.to_bytes({"params": params}))


for name in ("a", "b"):
    folder = Path(sys.argv[2]) / name
    folder.mkdir()
    {"pytorch": pytorch, "jax": jax}[sys.argv[1]](folder, name == "b")
