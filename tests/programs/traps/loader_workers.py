"""DataLoader workers and NumPy's random numbers: what two workers draw in two epochs, and what the remedy draws."""

import json

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Noise(Dataset):
    """Four samples, each a random number: from NumPy's global generator, the data set's own, or the remedy's."""

    def __init__(self, source: str) -> None:
        self.source, self.generator = source, np.random.default_rng(0)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if self.source == "global":
            return int(np.random.randint(2**31))
        return int(self.generator.integers(2**31))


def seed_worker(_number: int) -> None:
    """The remedy: each worker's copy of the data set gets another generator, seeded by PyTorch for worker and epoch."""
    worker = get_worker_info()
    worker.dataset.generator = np.random.default_rng(worker.seed)


def epochs(source: str, workers: int = 2) -> list[list[int]]:
    """What the samples 0 to 3 are in two epochs."""
    loader = DataLoader(
        Noise(source),
        batch_size=None,
        num_workers=workers,
        generator=torch.Generator().manual_seed(0) if source == "remedy" else None,
        worker_init_fn=seed_worker if source == "remedy" else None,
    )
    return [[int(sample) for sample in loader] for _ in range(2)]


np.random.seed(0)
results = {"numpy seeded": epochs("global")}
torch.manual_seed(0)
results |= {source: epochs(source) for source in ("global", "own", "remedy")}
print(json.dumps(results | {"one worker": epochs("remedy", workers=1)}))
