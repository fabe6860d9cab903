"""Numbers that a program hands to a library that logs, seen without a change.

Libraries are stand-ins with the functions that are hooked; real ones are tried where they are installed.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from support.observed import HERE, SCRIPTS, ended, interpreter, lines, notes, observed, start

FOLDER = SCRIPTS / "metrics"


def metrics(written: list[dict[str, Any]]) -> list[tuple[str, str, str, Any]]:
    return [(line["source"], line["name"], line["value"], line["step"]) for line in written if line["kind"] == "metric"]


def test_what_is_logged_is_written_with_all_its_bits(tmp_path: Path) -> None:
    _, written = observed(HERE, tmp_path, str(FOLDER / "log.py"))
    assert metrics(written) == [
        ("W&B", "loss", "0.10000000149011612", 3),
        ("W&B", "nested.acc", "0.5", 3),
        ("W&B", "loss", "0.1", None),
        ("TensorBoard", "loss/train", "0.25", 1),
        ("TensorBoard", "f1/a", "1", 2),
        ("TensorBoard", "f1/b", "nan", 2),
        ("TensorBoard", "step time", "1.5", 1),
        ("MLflow", "auc", "0.75", 4),
        ("MLflow", "f1", "0.5", 5),
        ("Lightning", "loss", "1e-30", 6),
        ("Trainer", "loss", "0.5", 10),
    ]
    assert notes(written) == ["a metric of W&B could not be read: ValueError: it is lost"]
    assert not any("unseen" in line for line in written)


@pytest.mark.parametrize("library", ["tensorboard", "wandb", "mlflow"])
def test_a_library_that_is_installed(library: str, tmp_path: Path) -> None:
    command = [interpreter("pytorch"), str(FOLDER / "real.py"), library]
    env = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "MLFLOW_ALLOW_FILE_STORE": "true"}
    printed = ended(start(command, None, **env))
    if printed.startswith("skipped: "):
        pytest.skip(f"{library} is not in .venv/pytorch: {printed.strip()}")
    assert ended(start(command, tmp_path, **env)) == printed
    written = [line for process in lines(tmp_path).values() for line in process]
    assert {metric[1:] for metric in metrics(written)} == {("loss", "0.1", 3)}
