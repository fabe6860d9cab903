"""Configuration: the dataclasses behind `train.yaml`, checked.

Nothing of a framework is loaded before this is done, so a mistake costs no waiting.
"""

import difflib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.errors import UsageError
from repro.frameworks import FRAMEWORKS
from repro.trainers.loop import float32, layout

# Hydra is imported where train.yaml is read: `repro record` and the like know the dataclasses alone.
if TYPE_CHECKING:
    from omegaconf import DictConfig

NAME = "train"
BAKED = Path(__file__).parents[3] / "workspace"

CHOICES = {
    "params.model": ("lenet", "convnet"),
    "params.optimizer": tuple(layout.SLOTS),
    "params.numerics": ("fast", "deterministic", "portable"),
    "params.engine": ("auto", "float64", "int8", "int16"),
    "params.device": ("auto", "cpu", "gpu"),
    "data.dataset": ("mnist", "fashion_mnist"),
}

# Of lists, each element must be one of these.
MEMBERS = {
    "verify.frameworks": tuple(FRAMEWORKS),
    "verify.numerics": CHOICES["params.numerics"],
    "benchmark.frameworks": tuple(FRAMEWORKS),
    "benchmark.numerics": CHOICES["params.numerics"],
    "benchmark.devices": ("all", "cpu", "gpu"),
}

# Of lists, each element must lie in the range of this key.
AXES = {
    "benchmark.batch_sizes": "params.batch_size_train",
    "benchmark.threads": "params.threads",
    "benchmark.train_samples": "data.train_samples",
}

PORTABLE = "the version of portable numerics"

TRAIN_SAMPLES, TEST_SAMPLES = 60_000, 10_000


@dataclass
class Params:
    """Settings of training; `train.yaml` says what each key means."""

    seed: int = 0
    n_epochs: int = 4
    num_workers: int = 0
    batch_size_train: int = 32
    ranks: int = 1
    batch_size_test: int = 1000
    model: str = "lenet"
    optimizer: str = "sgd"
    learning_rate: float = 0.01
    momentum: float = 0.5
    log_interval: int = 1000
    numerics: str = "deterministic"
    engine: str = "auto"
    device: str = "auto"
    threads: int = 2
    max_steps: int | None = None
    checkpoint_steps: int | None = None
    trace_steps: int | None = None
    trace_operations: bool = False
    resume: str = "never"


@dataclass
class Data:
    """The data set, and where `download` looks for it."""

    dataset: str = "mnist"
    train_samples: int = TRAIN_SAMPLES
    mirrors: dict[str, list[str]] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    npm: dict[str, str] = field(default_factory=dict)


@dataclass
class Output:
    """The folders of the data set and of checkpoints."""

    data_path: str = "${oc.env:WORKSPACE_PATH}/data"
    model_path: str = "${oc.env:WORKSPACE_PATH}/model"


@dataclass
class Verify:
    """Settings of `verify`; `train.yaml` says what each key means."""

    questions: list[str] = field(default_factory=lambda: ["all"])
    frameworks: list[str] = field(default_factory=lambda: list(FRAMEWORKS))
    numerics: list[str] = field(default_factory=lambda: ["deterministic"])
    steps: int = 100
    docker_image: str = "repro:0.1.0"
    sif: str = "repro.sif"
    others: dict[str, str] = field(default_factory=dict)


def _value_of(key: str) -> Any:
    """The value of another key, as OmegaConf interpolates it."""
    return f"${{{key}}}"


@dataclass
class Benchmark:
    """Settings of `benchmark`; `train.yaml` says what each key means."""

    frameworks: list[str] = field(default_factory=lambda: list(FRAMEWORKS))
    numerics: list[str] = field(default_factory=lambda: ["deterministic", "fast", "portable"])
    devices: list[str] = field(default_factory=lambda: ["all"])
    batch_sizes: list[int] = field(default_factory=lambda: [_value_of("params.batch_size_train")])
    threads: list[int] = field(default_factory=lambda: [_value_of("params.threads")])
    train_samples: list[int] = field(default_factory=lambda: [_value_of("data.train_samples")])
    tutorial: bool = True
    tuned: bool = False
    target: float | None = 0.98
    epochs: float = 0.5
    rounds: int = 10
    minutes: float = 9.5
    against: str | None = None


@dataclass
class Config:
    """The whole of `train.yaml`, Hydra's own part apart."""

    params: Params = field(default_factory=Params)
    data: Data = field(default_factory=Data)
    output: Output = field(default_factory=Output)
    verify: Verify = field(default_factory=Verify)
    benchmark: Benchmark = field(default_factory=Benchmark)
    environment: dict[str, str] = field(default_factory=dict)


SECTIONS = {"params": Params, "data": Data, "output": Output, "verify": Verify, "benchmark": Benchmark}
KEYS = [f"{name}.{key.name}" for name, section in SECTIONS.items() for key in fields(section)]

# (smallest, largest) allowed; None: no bound.
RANGES: dict[str, tuple[float, float | None]] = {
    "params.seed": (0, 2**64 - 1),
    "params.n_epochs": (1, None),
    "params.num_workers": (0, 256),
    "params.batch_size_train": (1, TRAIN_SAMPLES),
    "params.ranks": (1, TRAIN_SAMPLES),
    "params.batch_size_test": (1, TEST_SAMPLES),
    "params.log_interval": (1, None),
    "params.threads": (1, 1024),
    "params.max_steps": (1, None),
    "params.checkpoint_steps": (1, None),
    "params.trace_steps": (1, None),
    "data.train_samples": (1, TRAIN_SAMPLES),
    "verify.steps": (10, None),
    "benchmark.target": (0, 1),
    "benchmark.epochs": (0.01, 1000),
    "benchmark.rounds": (1, 1000),
    "benchmark.minutes": (0.1, 100_000),
}


def folder(workspace: Path) -> Path:
    """The folder whose `train.yaml` counts: the workspace, or the copy that comes with the code."""
    return workspace if os.path.lexists(workspace / f"{NAME}.yaml") else BAKED


def compose_config(workspace: Path, overrides: list[str]) -> Config:
    """Reads `train.yaml`, applies the overrides and checks the result. UsageError in one line if anything is wrong."""
    return compose_job("app", workspace, overrides)[0]


def compose_job(name: str, workspace: Path, overrides: list[str]) -> tuple[Config, "DictConfig"]:
    """The configuration, and all that Hydra composed for a job of this name, Hydra's own part included."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    for override in overrides:
        _check_key(override)
    source = folder(workspace).absolute()
    try:
        with initialize_config_dir(config_dir=str(source), job_name=name, version_base="1.3"):
            composed = compose(NAME, [*overrides, "hydra.mode=RUN"], return_hydra_config=True)
        own = [str(key) for key in composed if key != "hydra"]
        return check(OmegaConf.masked_copy(composed, own)), composed
    except OverrideParseException as error:
        raise UsageError(
            f"configuration: {error.override}: {_one_line(error)}; put a value with special characters in quotes of "
            "its own: KEY='\"VALUE\"'"
        ) from error
    except (HydraException, OmegaConfBaseException, YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"configuration: {source / NAME}.yaml: {_one_line(error)}") from error


def _check_key(override: str) -> None:
    """Checks for a misspelt key, and names the one that may be meant; Hydra would only say that it is not there."""
    key = override.split("=")[0].lstrip("+~")
    if key.split(".")[0] in ("hydra", "environment") or key.split("/")[0] == "hydra":
        return
    if not any(key == name or key.startswith(f"{name}.") for name in KEYS):
        raise UsageError(f"configuration: {override}: {_no_key(key)}")


def _no_key(key: str) -> str:
    close = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.8)
    hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(KEYS)}"
    return f"there is no key {key!r}; {hint}"


def check(composed: "DictConfig") -> Config:
    """A typed Config of what Hydra composed. UsageError that names the key, the value and the remedy."""
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

    try:
        merged = OmegaConf.merge(OmegaConf.structured(Config), composed)
        config = OmegaConf.to_object(merged)
    except ConfigKeyError as error:
        raise UsageError(f"configuration: {NAME}.yaml: {_no_key(str(error.full_key))}") from error
    except OmegaConfBaseException as error:
        raise UsageError(f"configuration: {_one_line(error)}") from error
    assert isinstance(config, Config)
    for key, choices in CHOICES.items():
        if _value(config, key) not in choices:
            raise UsageError(f"configuration: {key}={_value(config, key)}: must be one of {', '.join(choices)}")
    for key, members in MEMBERS.items():
        check_members(key, _value(config, key), members)
    for name in config.verify.others.keys() - FRAMEWORKS.keys():
        raise UsageError(f"configuration: verify.others.{name}: must be one of {', '.join(FRAMEWORKS)}")
    for key, (low, high) in RANGES.items():
        value = _value(config, key)
        if value is not None and not _within(value, low, high):
            raise UsageError(f"configuration: {key}={value}: must be {_bounds(low, high)}")
    for key, axis in AXES.items():
        given, (low, high) = _value(config, key), RANGES[axis]
        if not given or len(set(given)) < len(given) or not all(_within(value, low, high) for value in given):
            value = "[" + ",".join(map(str, given)) + "]"
            raise UsageError(f"configuration: {key}={value}: each must be {_bounds(low, high)}, and stand there once")
    params = config.params
    if not (math.isfinite(params.learning_rate) and params.learning_rate > 0):
        raise UsageError(f"configuration: params.learning_rate={params.learning_rate}: must be finite and above 0")
    if not 0 <= params.momentum < 1:
        raise UsageError(f"configuration: params.momentum={params.momentum}: must be at least 0 and below 1")
    if params.batch_size_train % params.ranks:
        raise UsageError(
            f"configuration: params.ranks={params.ranks}: must divide params.batch_size_train={params.batch_size_train}"
        )
    if params.trace_operations and params.ranks > 1:
        raise UsageError("configuration: params.trace_operations=true: needs params.ranks=1")
    if params.trace_operations and params.trace_steps != 1:
        raise UsageError("configuration: params.trace_operations=true: needs params.trace_steps=1")
    if params.numerics == "portable":
        float32.rounded(params.learning_rate, params.momentum)
    if not params.resume:
        raise UsageError("configuration: params.resume is empty: must be never, auto or the path of a checkpoint")
    return config


def check_members(key: str, given: list[str], members: Sequence[str]) -> None:
    """Raises UsageError unless a list has one or several of its members, each once."""
    if not given or len(set(given)) < len(given) or not set(given) <= set(members):
        value = "[" + ",".join(given) + "]"
        raise UsageError(f"configuration: {key}={value}: must be one or several of {', '.join(members)}, each once")


def deciding(config: Config, device: object) -> dict[str, object]:
    """The keys that decide the bits of the weights, on this device: `auto` may mean different ones on two machines."""
    names = ["seed", "batch_size_train", "model", "optimizer", "learning_rate", "numerics"]
    if config.params.optimizer == "sgd":
        names.append("momentum")
    keys: dict[str, object] = {f"params.{name}": getattr(config.params, name) for name in names}
    keys["data.dataset"] = config.data.dataset
    if config.data.train_samples < TRAIN_SAMPLES:  # else it is as if the key were not there, as in older checkpoints
        keys["data.train_samples"] = config.data.train_samples
    if config.params.numerics == "portable":  # the same bits on every device, with any number of threads
        return keys | {PORTABLE: 2}
    keys |= {"params.threads": config.params.threads, "params.ranks": config.params.ranks}
    return keys | {"device": device, "environment": dict(config.environment)}


def _within(value: float, low: float, high: float | None) -> bool:
    return value >= low and (high is None or value <= high)  # false for NaN, too


def _bounds(low: float, high: float | None) -> str:
    return f"at least {low}" if high is None else f"between {low} and {high}"


def _value(config: Config, key: str):
    section, name = key.split(".")
    return getattr(getattr(config, section), name)


def _one_line(error: Exception) -> str:
    """An error of Hydra, OmegaConf or the YAML parser in one line, the key first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    keys = [line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")]
    noise = ("full_key:", "object_type=", "reference_type=", "See https")
    said = [line for line in lines if not line.startswith(noise)]
    return ": ".join(dict.fromkeys([*keys, *said])).replace("..", ".") or type(error).__name__
