"""Train with Keras, and log the fingerprint after each epoch: with_keras.py TRACKER FOLDER."""

import os
import sys
from pathlib import Path

import keras
import numpy as np

from repro.fingerprint import weights_fingerprint

tracker, folder = sys.argv[1], Path(sys.argv[2])
os.environ["WANDB_MODE"] = "offline"


class WandbFingerprint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        wandb.log({"fingerprint": weights_fingerprint(self.model)})


class MlflowFingerprint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        mlflow.set_tag("fingerprint", weights_fingerprint(self.model))


class TensorboardFingerprint(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        tf.summary.text("fingerprint", weights_fingerprint(self.model), step=epoch)


if tracker == "wandb":
    import wandb

    wandb.init(project="repro", dir=folder)
elif tracker == "mlflow":
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
else:
    import tensorflow as tf

    tf.summary.create_file_writer(str(folder)).set_as_default()
callback = {"wandb": WandbFingerprint, "mlflow": MlflowFingerprint, "tensorboard": TensorboardFingerprint}[tracker]
samples = np.arange(64, dtype=np.float32).reshape(16, 4) / 64
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(samples, samples.sum(1), epochs=2, verbose=0, callbacks=[callback()])
if tracker == "wandb":
    wandb.teardown()  # its own process has written all
elif tracker == "mlflow":
    mlflow.end_run()
else:
    tf.summary.flush()
print(weights_fingerprint(model))
