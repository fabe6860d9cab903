"""Metrics that the program hands to a library that logs.

TensorBoard, W&B, MLflow, Lightning's loggers, the Trainer of transformers, Keras: one function of each is called for every
value. It is called first, and then its arguments are read. A value that cannot be read is left out: no step depends on it.
"""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Optional

from . import recorder

LONGEST = 40  # characters of a number


def _log(source: str, name: Any, value: Any, step: Any = None, unit: str = "step") -> None:
    """Writes a line for a number, as text that holds all its bits; other values are no metrics."""
    text = _text(value)
    if text is None or recorder.active is None:
        return
    number = _text(step)
    counted = int(float(number)) if number is not None and number not in ("nan", "inf", "-inf") else None
    line = {"kind": "metric", "source": source, "name": str(name), "value": text, "step": counted, "unit": unit}
    recorder.active.write(line)


def _text(value: Any) -> Optional[str]:
    """A number as text; None for anything else, also for what is being traced."""
    kind = type(value)
    if not isinstance(value, (int, float)) and getattr(value, "size", None) != 1 and not _is_single_tensor(value):
        return None
    if kind.__module__.startswith("jax") and "Tracer" in kind.__name__:
        return None
    if not isinstance(value, (int, float)):
        value = value.numpy() if hasattr(value, "numpy") and not hasattr(value, "detach") else value
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    text = repr(float(value) if isinstance(value, float) else int(value))
    return text if len(text) <= LONGEST else None


def _is_single_tensor(value: Any) -> bool:
    """True for a tensor of PyTorch or TensorFlow with one number, which it holds now."""
    count = getattr(value, "numel", None)
    if callable(count):
        return bool(count() == 1)
    return callable(getattr(value, "numpy", None)) and getattr(value, "shape", None) == ()


def _hook(holder: Any, name: str, source: str, take: Callable[..., Any]) -> None:
    """Makes a function of a class or a module have its arguments read once it has returned."""
    function = getattr(holder, name, None)
    if function is None:
        return

    @recorder.never_raise
    def read(arguments: Any, options: Any) -> None:
        try:
            for entry in take(*arguments, **options):
                _log(source, *entry)
        except Exception as error:
            recorder.note(f"a metric of {source} could not be read: {type(error).__name__}: {error}")

    @functools.wraps(function)
    def watched(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        read(arguments, options)
        return result

    setattr(holder, name, watched)


def _scalars(values: Any, step: Any = None, unit: str = "step") -> Any:
    """The numbers of a dict, also of one within it."""
    for name, value in dict(values or {}).items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", number, step, unit) for inner, number, *_ in _scalars(value))
        else:
            yield name, value, step, unit


def _add_scalar(self: Any, tag: Any, scalar_value: Any = None, global_step: Any = None, *_: Any, **__: Any) -> Any:
    yield tag, scalar_value, global_step


def _add_scalars(
    self: Any, main_tag: Any, tag_scalar_dict: Any = None, global_step: Any = None, *_: Any, **__: Any
) -> Any:
    for tag, value in dict(tag_scalar_dict or {}).items():
        yield f"{main_tag}/{tag}", value, global_step


def _of_writers(module: ModuleType) -> None:
    for name, take in (("add_scalar", _add_scalar), ("add_scalars", _add_scalars)):
        _hook(getattr(module, "SummaryWriter", None), name, "TensorBoard", take)


def _summary_scalar(name: Any, data: Any = None, step: Any = None, *_: Any, **__: Any) -> Any:
    experimental = getattr(getattr(sys.modules.get("tensorflow"), "summary", None), "experimental", None)
    default = experimental.get_step() if step is None and experimental is not None else step
    yield name, data, default


def _wandb_log(self: Any, data: Any = None, step: Any = None, *_: Any, **__: Any) -> Any:
    return _scalars(data, step)


def _mlflow_metric(
    self: Any, run_id: Any, key: Any = None, value: Any = None, timestamp: Any = None, step: Any = None, **_: Any
) -> Any:
    yield key, value, step


def _mlflow_batch(self: Any, run_id: Any, metrics: Any = (), *_: Any, **__: Any) -> Any:
    return ((metric.key, metric.value, metric.step) for metric in metrics or ())


def _lightning_csv(self: Any, metrics_dict: Any, step: Any = None, *_: Any, **__: Any) -> Any:
    return _scalars(metrics_dict, step)


def _trainer_log(self: Any, logs: Any, *_: Any, **__: Any) -> Any:
    return _scalars(logs, self.state.global_step)


def _epoch_end(self: Any, epoch: Any, logs: Any = None) -> Any:
    return _scalars(logs, epoch + 1, "epoch")


def _test_end(self: Any, logs: Any = None) -> Any:
    return ((f"evaluate {name}", value, step, unit) for name, value, step, unit in _scalars(logs))


def _of_keras(module: ModuleType) -> None:
    _hook(module.callbacks.CallbackList, "on_epoch_end", "Keras", _epoch_end)
    _hook(module.callbacks.CallbackList, "on_test_end", "Keras", _test_end)


def _of_mlflow(module: ModuleType) -> None:
    _hook(module.MlflowClient, "log_metric", "MLflow", _mlflow_metric)
    _hook(module.MlflowClient, "log_batch", "MLflow", _mlflow_batch)


MODULES: dict[str, Callable[[ModuleType], None]] = {
    "torch.utils.tensorboard.writer": _of_writers,
    "tensorboardX.writer": _of_writers,
    "tensorboard.plugins.scalar.summary_v2": lambda module: _hook(module, "scalar", "TensorBoard", _summary_scalar),
    "wandb.sdk.wandb_run": lambda module: _hook(module.Run, "log", "W&B", _wandb_log),
    "mlflow.tracking.client": _of_mlflow,
    "lightning.fabric.loggers.csv_logs": lambda module: _hook(
        module._ExperimentWriter, "log_metrics", "Lightning", _lightning_csv
    ),
    "lightning_fabric.loggers.csv_logs": lambda module: _hook(
        module._ExperimentWriter, "log_metrics", "Lightning", _lightning_csv
    ),
    "transformers.trainer": lambda module: _hook(module.Trainer, "log", "Trainer", _trainer_log),
    "keras": _of_keras,
}
"""What is hooked in each module, once it has loaded."""
