"""Operations of golden/operations.txt that PyTorch alone has."""

import torch

from programs.golden_cases.cases import Case

CASES: dict[str, Case] = {}
aten = torch.ops.aten
