"""Train with Hugging Face's Trainer, and log the fingerprint after each epoch: with_trainer.py TRACKER FOLDER."""

import os
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from repro.fingerprint import weights_fingerprint

tracker, folder = sys.argv[1], Path(sys.argv[2])
os.environ |= {
    "WANDB_MODE": "offline",
    "WANDB_DIR": str(folder),
    "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
}
os.environ |= {"TENSORBOARD_LOGGING_DIR": str(folder / "logs")}


class WandbFingerprint(TrainerCallback):
    def on_epoch_end(self, args, state, control, model, **kwargs):
        wandb.log({"fingerprint": weights_fingerprint(model)})


class MlflowFingerprint(TrainerCallback):
    def on_epoch_end(self, args, state, control, model, **kwargs):
        mlflow.set_tag("fingerprint", weights_fingerprint(model))


class TensorboardFingerprint(TrainerCallback):
    def on_epoch_end(self, args, state, control, model, **kwargs):
        writer.add_text("fingerprint", weights_fingerprint(model), state.global_step)


if tracker == "wandb":
    import wandb
elif tracker == "mlflow":
    import mlflow
else:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder / "fingerprint")


class Sequences(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.arange(8) * (index + 1) % 50
        return {"input_ids": ids, "attention_mask": torch.ones(8, dtype=torch.int64), "labels": index % 2}


config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2
)
callback = {"wandb": WandbFingerprint, "mlflow": MlflowFingerprint, "tensorboard": TensorboardFingerprint}[tracker]
options = TrainingArguments(
    output_dir=str(folder / "out"),
    num_train_epochs=2,
    report_to=[tracker],
    logging_steps=1,
    save_strategy="no",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(BertForSequenceClassification(config), options, train_dataset=Sequences(), callbacks=[callback()])
trainer.train()
if tracker == "wandb":
    wandb.teardown()  # its own process has written all
elif tracker == "tensorboard":
    writer.close()
print(weights_fingerprint(trainer.model))
