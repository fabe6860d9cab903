"""Fingerprints of PyTorch's modules: those of their arrays, also of bfloat16, strides and conjugates; others are refused."""

import numpy as np
import torch
from torch import nn

from repro.fingerprint import fingerprint, weights_fingerprint

model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
assert "1.num_batches_tracked" in arrays
assert weights_fingerprint(model) == weights_fingerprint(model.state_dict()) == fingerprint(arrays)

numbers = torch.arange(6.0).reshape(2, 3) * (1 + 2j)
assert weights_fingerprint({"w": numbers.conj()}) == fingerprint({"w": numbers.numpy().conj()})
assert weights_fingerprint({"w": numbers.conj().T.imag}) == fingerprint({"w": numbers.numpy().conj().T.imag})
narrow = {"w": torch.ones(4, dtype=torch.bfloat16)}
bits = np.full(4, 0x3F80, np.uint16)
assert weights_fingerprint(narrow) not in (fingerprint({"w": bits}), weights_fingerprint({"w": torch.ones(4).half()}))
assert weights_fingerprint(narrow) == weights_fingerprint({"w": torch.from_numpy(bits).view(torch.bfloat16)})

for refused in (
    torch.eye(2).to_sparse(),
    torch.ones(2, device="meta"),
    torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
):
    try:
        weights_fingerprint({"w": refused})
    except ValueError as error:
        assert "is no dense array" in str(error)  # noqa: PT017
    else:
        raise AssertionError(refused)
print("the same")
