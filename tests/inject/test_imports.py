"""Functions that wait for a module are called once, after the import.

Not while a module is only looked for.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from repro.inject.imports import Finder

NAME = "repro_tests_hooked"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModuleType]]:
    """The modules that a function was called with, where the finder waits for one of this folder's."""
    modules: list[ModuleType] = []
    finder = Finder()
    finder.when_imported(NAME, modules.append)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    (tmp_path / f"{NAME}.py").write_text("VALUE = 1")
    yield modules
    sys.modules.pop(NAME, None)


def test_a_module_that_is_looked_for_before_it_is_loaded(installed: list[ModuleType]) -> None:
    assert importlib.util.find_spec(NAME) is not None
    assert importlib.util.find_spec(NAME) is not None
    assert installed == []
    module = importlib.import_module(NAME)
    assert installed == [module] and module.VALUE == 1
    importlib.reload(module)
    assert installed == [module]


def test_a_module_that_cannot_be_loaded_at_first(installed: list[ModuleType], tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.py").write_text("raise ValueError")
    with pytest.raises(ValueError, match=r"^$"):
        importlib.import_module(NAME)
    assert installed == []
    (tmp_path / f"{NAME}.py").write_text("VALUE = 20")
    assert installed == [] and importlib.import_module(NAME).VALUE == 20 and len(installed) == 1


def test_a_module_that_is_not_there(installed: list[ModuleType], tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.py").unlink()
    importlib.invalidate_caches()
    assert importlib.util.find_spec(NAME) is None
    with pytest.raises(ImportError):
        importlib.import_module(NAME)
    assert installed == []
