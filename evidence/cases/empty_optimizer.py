"""The loop makes an optimizer of its own, the checkpoint has another object's state, which is empty.

source: treeleaves30760/CodefyUI PR 147
answers: restart same, kill differs
cause: optimizer.*not restored|state of the optimizer
"""

import torch
from case import finish, restored, save, update


class Node:
    """One part of a pipeline: a model with an optimizer."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(8, 4)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)


def train(node: Node, batches: torch.Tensor) -> None:
    begin = 0
    if kept := restored():
        node.model.load_state_dict(kept["model"])
        node.optimizer.load_state_dict(kept["optimizer"])
        begin = kept["step"]
    optimizer = torch.optim.AdamW(node.model.parameters(), lr=0.01)  # the fault: node.optimizer
    for step in range(begin, len(batches)):
        update(node.model, optimizer, batches[step])
        if step % 4 == 3:
            save(model=node.model.state_dict(), optimizer=node.optimizer.state_dict(), step=step + 1)


node = Node()
train(node, torch.randn(40, 16, 8, generator=torch.Generator().manual_seed(1)))
finish(node.model)
