"""Imports among the observer's files go one way.

Also those within functions, and by name.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from repro.observe import hooks

FOLDER = Path(hooks.__file__).parent


def imports(file: Path) -> set[str]:
    """The files of the same folder that this one imports, wherever in it that is."""
    nodes = [
        node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom) and node.level == 1
    ]
    return {node.module or alias.name for node in nodes for alias in node.names}


def test_no_file_imports_one_that_imports_it() -> None:
    graph = {file.stem: imports(file) for file in FOLDER.glob("*.py")}
    assert graph["hooks"] >= {"recorder", "generators"} and graph["pytorch"] >= {"hashing"}  # it has read them
    graph["hooks"] |= {file for files in hooks.WATCHERS.values() for file in files}
    assert {file for files in graph.values() for file in files} <= graph.keys()
    assert {*TopologicalSorter(graph).static_order()} == graph.keys()  # CycleError names the circle


def test_only_the_hooks_import_by_name() -> None:
    by_name = {file.stem for file in FOLDER.glob("*.py") if 'import_module("."' in file.read_text()}
    assert by_name == {"hooks"}
