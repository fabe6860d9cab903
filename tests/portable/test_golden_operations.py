"""golden/operations.txt: the bits of definitions, by framework, type, pass and layout."""

import pytest

from repro.frameworks import FRAMEWORKS
from support.programs import program
from support.runs import ROOT

pytestmark = pytest.mark.portable


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_operations_have_the_published_bits(framework: str) -> None:
    assert (
        program(framework, "golden_operations.py", framework, "--check", str(ROOT / "golden" / "operations.txt")) == ""
    )
