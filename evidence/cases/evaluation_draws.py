"""Evaluation shares the generator with training: to evaluate more often changes what is trained.

source: karpathy/char-rnn#17
vary: evaluate=--evaluate={}:1000,5
answers: restart same, evaluate differs
cause: generator|drew|draws
"""

import torch
from case import finish, option, update

torch.manual_seed(0)
text = torch.randn(512, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
every = option("evaluate", 1000)


def batch() -> torch.Tensor:
    """Eight rows from random positions."""
    return text[torch.randint(len(text), (8,))]


for step in range(1, 25):
    update(model, optimizer, batch())
    if step % every == 0:
        with torch.no_grad():
            print(f"step {step}: loss {model(batch()).square().mean():.4f}")
finish(model)
