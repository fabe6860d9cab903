"""Short runs of a trainer in portable numerics.

    python portable_training.py FRAMEWORK DATA RUN...

Prints JSON: of each run below the fingerprint of the weights, and loss and correct answers on a few test images.
"""

import dataclasses
import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from repro.trainers.loop import environment
from repro.trainers.loop.config import Config, Data, Output, Params
from repro.trainers.loop.data import load
from repro.trainers.loop.training import TrainingRun

RUNS: dict[str, tuple[int, dict[str, Any]]] = {
    "smaller last batch": (80, {"batch_size_train": 64, "n_epochs": 1}),
    "smaller last batches": (336, {"batch_size_train": 64, "n_epochs": 2}),
    "convnet": (48, {"model": "convnet", "optimizer": "adadelta", "learning_rate": 1.0, "batch_size_train": 16}),
}
TEST_SAMPLES = 96


def main(framework: str, folder: str, *names: str) -> None:
    environment.apply(framework, Config(params=Params(numerics="portable", device="cpu")))
    trainer = importlib.import_module(f"mnist_{framework}").Trainer
    results = {}
    for name in names:
        samples, options = RUNS[name]
        params = Params(numerics="portable", device="cpu", **({"n_epochs": 1} | options))
        data = Data(train_samples=samples)
        every = load(data, Path(folder))
        images, labels = every.test_images[:TEST_SAMPLES], every.test_labels[:TEST_SAMPLES]
        dataset = dataclasses.replace(every, test_images=images, test_labels=labels)
        with tempfile.TemporaryDirectory() as place:
            config = Config(params=params, data=data, output=Output(model_path=place))
            run = TrainingRun(framework, config, trainer(params, dataset), dataset, Path(place))
            results[name] = [run.train(), run.metrics[-1]["test_loss"], run.metrics[-1]["test_accuracy"]]
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
