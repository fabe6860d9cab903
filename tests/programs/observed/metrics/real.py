"""Logs 0.1 as `loss` at step 3 by a library that is named, if it is installed."""

import os
import sys
import tempfile

library, folder = sys.argv[1], tempfile.mkdtemp()
os.chdir(folder)
try:
    if library == "tensorboard":
        import tensorboard  # noqa: F401  # PyTorch takes longer to say that it is not there
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(folder) as writer:
            writer.add_scalar("loss", 0.1, 3)
    elif library == "wandb":
        import wandb

        with wandb.init(project="none", dir=folder, mode="offline", settings={"silent": True, "console": "off"}):
            wandb.log({"loss": 0.1}, step=3)
    elif library == "mlflow":
        import mlflow

        mlflow.set_tracking_uri(f"file:{folder}/runs")
        with mlflow.start_run():
            mlflow.log_metric("loss", 0.1, step=3)
except ImportError as error:
    print(f"skipped: {error}")
