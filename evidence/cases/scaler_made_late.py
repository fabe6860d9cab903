"""The GradScaler's state is saved and loaded; then the trainer makes another GradScaler.

source: ultralytics/ultralytics PR 22189
answers: restart same, kill differs
cause: scale
"""

from typing import Any

import torch
from case import finish, restored, save


class Trainer:
    """Loads a checkpoint, and sets itself up."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.batches = torch.randn(60, 16, 8)
        self.model = torch.nn.Linear(8, 4)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scaler = torch.amp.GradScaler("cpu")
        self.step = 0

    def load(self, kept: dict[str, Any]) -> None:
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])
        self.scaler.load_state_dict(kept["scaler"])
        self.step = kept["step"]

    def set_up(self) -> None:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=9)  # the fault: after loading

    def train(self) -> None:
        while self.step < 60:
            self.optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = self.model(self.batches[self.step]).square().mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.step += 1
            if self.step % 5 == 0:
                states = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
                save(**states, scaler=self.scaler.state_dict(), step=self.step)


trainer = Trainer()
if kept := restored():
    trainer.load(kept)
trainer.set_up()
trainer.train()
finish(trainer.model)
