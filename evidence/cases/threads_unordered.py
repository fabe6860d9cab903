"""Samples are read by threads and taken as they come, so a batch has another order in each run.

source: NVIDIA/DIGITS#883, eth-easl/modyn#360
answers: restart differs
cause: which of them comes first
"""

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from case import finish, update

torch.manual_seed(0)
examples = torch.randn(64, 8)


def decoded(number: int) -> torch.Tensor:
    torch.randn(200 * (1 + number % 3), 200, generator=torch.Generator().manual_seed(number)).svd()
    return examples[number]


model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with ThreadPoolExecutor(4) as pool:
    for begin in range(0, 64, 4):
        jobs = [pool.submit(decoded, number) for number in range(begin, begin + 4)]
        update(model, optimizer, torch.stack([job.result() for job in as_completed(jobs)]))  # the fault
finish(model)
