"""Logs numbers of several types by each library's stand-in, and values that are no numbers."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent / "libraries"))

import numpy as np
from lightning.fabric.loggers.csv_logs import _ExperimentWriter
from mlflow.tracking.client import MlflowClient
from tensorboardX.writer import SummaryWriter
from transformers.trainer import Trainer
from wandb.sdk.wandb_run import Run


class Broken:
    """A value that cannot be read."""

    size = 1

    def item(self):
        raise ValueError("it is lost")

    def __repr__(self):
        return "broken"


run = Run()
run.log({"loss": np.float32(0.1), "nested": {"acc": 0.5}, "image": "a.png", "flag": True}, step=np.int64(3))
run.log({"loss": Broken()})
run.log(data={"loss": 0.1}, commit=False)
writer = SummaryWriter()
writer.add_scalar("loss/train", np.array([0.25]), 1)
writer.add_scalars("f1", {"a": 1, "b": float("nan")}, global_step=2)
writer.add_scalar("step time", 1.5, 1)
MlflowClient().log_metric("1", "auc", 0.75, step=4)
MlflowClient().log_batch("1", metrics=[SimpleNamespace(key="f1", value=0.5, step=5)])
_ExperimentWriter().log_metrics({"loss": 1e-30}, 6)
Trainer().log({"loss": 0.5, "text": "none"})
