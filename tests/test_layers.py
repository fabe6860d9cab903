"""Imports at run time, by name: import-linter cannot see them, but its layers hold for them, too."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.runs import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
(LAYERS,) = (
    [line.split() for line in each["layers"]]
    for each in CONTRACTS
    if each["type"] == "layers" and "containers" not in each
)
IMPORTERS = ("import_module", "__import__")


def imported_by_name(source: str) -> Iterator[str]:
    """The names below `repro.` that a source imports by a call, as far as they are written out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and name_of(node.func) in IMPORTERS:
            start = written_out(node.args[0])
            if start.startswith("repro."):
                yield start


def name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def written_out(argument: ast.expr) -> str:
    """A string, or an f-string up to its first value."""
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
    return str(first.value) if isinstance(first, ast.Constant) else ""


def layer_of(module: str) -> tuple[int, str]:
    """The number of a module's layer, from the top, and its folder there."""
    for number, layer in enumerate(LAYERS):
        for folder in layer:
            if f"{module}.".startswith(f"{folder}."):
                return number, folder
    raise AssertionError(f"no layer of pyproject.toml holds {module}")


def goes_down(importer: str, imported: str) -> bool:
    """Whether an import stays in its folder, or goes to a lower layer, or a neighbor that its layer allows (`:`)."""
    (above, own), (below, other) = layer_of(importer), layer_of(imported)
    return above < below or own == other or (above == below and ":" in LAYERS[above])


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_imports_by_name_go_down() -> None:
    results = [
        (module_of(path), name)
        for path in (ROOT / "repro").rglob("*.py")
        for name in imported_by_name(path.read_text())
    ]
    assert [pair for pair in results if not goes_down(*pair)] == []


@pytest.mark.parametrize(
    ("importer", "source", "allowed"),
    [
        ("repro.trainers.loop.launch", 'importlib.import_module("repro.trainers.native.pytorch.ranks")', False),
        ("repro.trainers.loop.launch", '__import__(f"repro.commands.{name}")', False),
        ("repro.portable.modes.common.switch", 'import_module(f"repro.trainers.native.{name}.ranks")', False),
        ("repro.commands.train", 'import_module(f"repro.trainers.native.{name}.ranks")', True),
        ("repro.trainers.loop.launch", 'import_module("repro.trainers.loop.ranks")', True),
    ],
)
def test_an_import_up_is_seen(importer: str, source: str, allowed: bool) -> None:
    (imported,) = imported_by_name(source)
    assert goes_down(importer, imported) is allowed


def test_a_name_without_its_layer_is_refused() -> None:
    (imported,) = imported_by_name('import_module(f"repro.{name}")')
    with pytest.raises(AssertionError, match="no layer"):
        goes_down("repro.commands.train", imported)
