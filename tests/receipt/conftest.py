"""A training that is recorded once, its receipt, and the keys of its maker and of an auditor."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import keys
from support.commands import repro
from support.runs import PROGRAMS

TRAINING = "audited_training.py"


def train(folder: Path, name: str, **variables: str) -> Path:
    """A record of the training, made in a folder that holds the script."""
    if not (folder / TRAINING).exists():
        shutil.copy(PROGRAMS / TRAINING, folder)
    words = ["record", "--to", name, "--checkpoints", "{run}/checkpoint.npz", "--output", "{run}/model.npy", "--"]
    done = repro(*words, sys.executable, TRAINING, "--out", "{run}", cwd=folder, **variables)
    assert done.returncode == 0, done.stderr
    return folder / name


@dataclass
class Maker:
    """A folder with a key, in which trainings are recorded and signed."""

    folder: Path

    def key(self, name: str = "maker") -> Path:
        path = self.folder / name
        if not path.exists():
            keys.make(path)
        return path

    def sign(self, record: Path, *more: str) -> Path:
        done = repro("receipt", str(record), "--key", str(self.key()), *more, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return record / "receipt.json"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of the honest training, beside its script."""
    return train(tmp_path_factory.mktemp("maker"), "record")


@pytest.fixture
def maker(tmp_path: Path, recorded: Path) -> Maker:
    """A folder with a copy of that record, called `record`, and with the script."""
    shutil.copytree(recorded, tmp_path / "record")
    shutil.copy(PROGRAMS / TRAINING, tmp_path)
    return Maker(tmp_path)
