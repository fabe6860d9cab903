"""Train with Lightning, and log the fingerprint after each epoch: with_lightning.py TRACKER FOLDER."""

import os
import sys
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import MLFlowLogger, TensorBoardLogger, WandbLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from repro.fingerprint import weights_fingerprint

tracker, folder = sys.argv[1], Path(sys.argv[2])
os.environ["WANDB_MODE"] = "offline"


class WandbFingerprint(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        trainer.logger.experiment.log({"fingerprint": weights_fingerprint(pl_module)})


class MlflowFingerprint(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        trainer.logger.experiment.set_tag(trainer.logger.run_id, "fingerprint", weights_fingerprint(pl_module))


class TensorboardFingerprint(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        trainer.logger.experiment.add_text("fingerprint", weights_fingerprint(pl_module), trainer.global_step)


class Line(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = (self.layer(batch[0]) - batch[1]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


if tracker == "wandb":
    import wandb

    logger = WandbLogger(save_dir=folder, offline=True)
elif tracker == "mlflow":
    logger = MLFlowLogger(tracking_uri=f"sqlite:///{folder}/mlflow.db")
else:
    logger = TensorBoardLogger(folder)
callback = {"wandb": WandbFingerprint, "mlflow": MlflowFingerprint, "tensorboard": TensorboardFingerprint}[tracker]
samples = torch.arange(64.0).reshape(16, 4) / 64
loader = DataLoader(TensorDataset(samples, samples.sum(1, keepdim=True)), batch_size=4)
model = Line()
trainer = Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=logger,
    callbacks=[callback()],
    enable_checkpointing=False,
    enable_progress_bar=False,
    log_every_n_steps=1,
)
trainer.fit(model, loader)
if tracker == "wandb":
    wandb.teardown()  # its own process has written all
print(weights_fingerprint(model))
