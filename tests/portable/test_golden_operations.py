"""golden/operations.txt: the bits of definitions, by framework, type, pass and layout."""

import pytest

from programs.golden_cases import cases, table
from repro.frameworks import FRAMEWORKS
from support.programs import program
from support.runs import ROOT

pytestmark = pytest.mark.deep


TABLE = str(ROOT / "golden" / "operations.txt")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_definition_has_rows_or_a_reason_and_rows_have_the_published_bits(framework: str) -> None:
    assert program(framework, "golden_operations.py", framework, "--check", TABLE, "--missing") == ""


def test_frameworks_share_a_name_where_they_share_the_arrays() -> None:
    names = [{row[0] for row in rows} - set(cases.INPUTS) for rows in table.read().values()]
    assert sum(map(len, names)) == len(set().union(*names))
