"""experiment.json: what a training that describes itself says of its run, as the reference trainers do."""

from typing import Any

from msgspec import field

from repro.structs import Fingerprint, Integer, Struct

ALL_SAMPLES = 60_000  # of MNIST


class TrainedData(Struct):
    """The data that was trained on."""

    dataset: str
    train_samples: Integer = ALL_SAMPLES
    """Older runs took them all."""


class Configuration(Struct):
    """The configuration, as far as it is read."""

    params: dict[str, Any]
    data: TrainedData
    environment: dict[str, str] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)


class Framework(Struct):
    """Facts of a framework in experiment.json, as far as they are read."""

    version: str | None = None
    device: str | None = None
    device_name: str | None = None
    threads: Integer | None = None


class FinalHashes(Struct):
    """The fingerprints of experiment.json, as far as they are read."""

    final_weights: Fingerprint | None


class Experiment(Struct):
    """The whole file, as far as it is read."""

    task: str
    config: Configuration
    framework: Framework
    sha256: FinalHashes
