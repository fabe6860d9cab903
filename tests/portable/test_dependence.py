"""What an element of a result depends on: docs/reference/specification.md has a table, which docs/dependence.py writes."""

import importlib.util
import json
from types import ModuleType

import pytest

from repro.frameworks import FRAMEWORKS
from support.programs import program
from support.runs import ROOT

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def dependence() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_dependence", ROOT / "docs" / "dependence.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_results_depend_on_what_the_table_says(framework: str, dependence: ModuleType) -> None:
    table = dependence.read(dependence.PAGE.read_text(encoding="utf-8"))[framework]
    report = json.loads(program(framework, f"dependence/{framework}.py"))
    assert sorted(dependence.rows(report)) == sorted(table)


def test_a_table_that_is_read_is_written_the_same(dependence: ModuleType) -> None:
    page = dependence.PAGE.read_text(encoding="utf-8")
    assert dependence.written(dependence.read(page)) == dependence.TABLE.search(page)[2]
