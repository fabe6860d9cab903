"""Threads of a pool augment samples by one generator: which sample gets which number depends on the thread that comes first.

source: chainer/chainer PR 3575, tensorflow/tensorflow#34909
answers: restart differs
cause: threads draw from one generator
"""

import random
from concurrent.futures import ThreadPoolExecutor

import torch
from case import finish, update

random.seed(0)
torch.manual_seed(0)
examples = torch.randn(64, 8)


def augmented(number: int) -> torch.Tensor:
    torch.randn(200 * (1 + number % 3), 200, generator=torch.Generator().manual_seed(number)).svd()  # as decoding
    return examples[number] * random.uniform(0.8, 1.2)  # the fault


model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with ThreadPoolExecutor(4) as pool:
    for begin in range(0, 64, 8):
        update(model, optimizer, torch.stack([*pool.map(augmented, range(begin, begin + 8))]))
finish(model)
