"""An evaluation's batches, changed in a process of its own."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.inject import batches, marks
from repro.record.injection import SITE
from support.runs import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "printed", "left"),
    [
        ("objects=1", "[4, 4] [4, 4]\nFalse", []),
        ("last_batch=kept", "[4, 4, 2] [4, 4, 2]\nFalse", ["last batch"]),
        ("statistics=running", "[4, 4] [4, 4]\nTrue", ["statistics"]),
    ],
)
def test_pytorch(change: str, printed: str, left: list[str], tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    own = {"PYTHONPATH": str(SITE), "REPRO_CHANGES": change, "REPRO_OBSERVE": str(tmp_path)}
    python, program = ROOT / ".venv/pytorch/bin/python", ROOT / "tests/programs/evaluation_batches.py"
    done = subprocess.run([python, program], env=os.environ | own, capture_output=True, text=True, check=True)
    assert done.stdout == f"{printed} True\n"  # a layer without running statistics is left as it is
    assert [path.name for path in tmp_path.glob(f"steps/{marks.MARK}*")] == [marks.MARK + name for name in left]


def test_tensorflow_and_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dataset:
        def batch(self, batch_size: int, drop_remainder: bool = False, name: str = "") -> tuple[int, bool, str]:
            return batch_size, drop_remainder, name

    class BatchNormalization:
        def call(self, inputs: int, training: bool | None = None, mask: object = None) -> tuple[int, bool | None]:
            return inputs, training

    def left() -> set[str]:
        return {path.name.removeprefix(marks.MARK) for path in tmp_path.glob("steps/*")}

    (tmp_path / "steps").mkdir()
    monkeypatch.setenv("REPRO_OBSERVE", str(tmp_path))
    tensorflow: Any = SimpleNamespace(data=SimpleNamespace(Dataset=Dataset))
    keras: Any = SimpleNamespace(layers=SimpleNamespace(BatchNormalization=BatchNormalization))
    batches._keep_tensorflow(tensorflow)
    batches._run_keras(keras)
    assert (Dataset().batch(4, name="a"), BatchNormalization().call(3)) == ((4, False, "a"), (3, False))
    assert left() == set()
    assert Dataset().batch(4, True) == (4, False, "")
    assert left() == {batches.KEPT}
    assert BatchNormalization().call(3, training=True) == (3, False)
    assert left() == {batches.KEPT, batches.RUNNING}
