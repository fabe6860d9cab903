"""index.ipynb runs from top to bottom, and its committed outputs are those of a real run."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from repro.fingerprint import fingerprint
from repro.trainers.loop import randomness
from support.runs import HANG, ROOT

NOTEBOOK = ROOT / "index.ipynb"


def texts(notebook: Path) -> list[str]:
    """The output of each code cell."""
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(
        output["output_type"] == "stream" for cell in cells for output in cell["outputs"]
    )  # no error, no warning
    return ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in cells]


@pytest.mark.slow
def test_from_top_to_bottom(data_dir: Path, tmp_path: Path) -> None:
    for framework in ("pytorch", "tensorflow", "jax"):
        if not (ROOT / ".venv" / framework / "installed").exists():
            pytest.skip(f"no environment .venv/{framework}")
    executed = tmp_path / "index.ipynb"
    jupyter = ROOT / ".venv" / "dev" / "bin" / "jupyter"
    command = [str(jupyter), "execute", f"--output={executed}", str(NOTEBOOK)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"REPRO_DATA": str(data_dir)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fresh = texts(executed)
    assert len(fresh) == len(texts(NOTEBOOK))
    assert [bool(text) for text in fresh] == [bool(text) for text in texts(NOTEBOOK)]
    assert fresh[-1] == texts(NOTEBOOK)[-1]  # portable: the same bits on this machine as on that of the committed run


def test_committed_outputs() -> None:
    assert fingerprint(randomness.initial_weights(0, "lenet")) in texts(NOTEBOOK)[1]
    assert str(ROOT) not in NOTEBOOK.read_text()
