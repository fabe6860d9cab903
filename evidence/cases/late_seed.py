"""The seed is set after the model's head was made: its initial weights are new in each run, all later draws are not.

source: huggingface/trl PR 4887, huggingface/transformers#8569, #11965
answers: restart differs
cause: before the (seed|first seed)|seed (was|is) set after|drawn before
"""

import torch
from case import finish, update
from torch.utils.data import DataLoader

head = torch.nn.Linear(8, 4)


def train(model: torch.nn.Module, seed: int) -> None:
    torch.manual_seed(seed)  # the fault: too late for the head
    examples = torch.randn(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for batch in DataLoader(examples, 8, shuffle=True):
            update(model, optimizer, batch)


train(head, seed=42)
finish(head)
