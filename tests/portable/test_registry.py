"""golden/registry/: the kind of each operation that a framework registers, so that no version brings one unseen."""

import pytest

from programs.registry import Registry, differences, read, written
from repro.frameworks import FRAMEWORKS
from support.programs import program
from support.runs import ROOT

TABLES = {name: ROOT / "golden" / "registry" / f"{name}.txt" for name in FRAMEWORKS}
KNOWN = Registry("PyTorch 1.0", {"aten::add": "exact", "aten::exp": "defined", "aten::fft": "refused"})


@pytest.mark.deep
@pytest.mark.parametrize("framework", TABLES)
def test_each_operation_that_is_registered_is_in_the_table_with_its_kind(framework: str) -> None:
    registry = read(TABLES[framework].read_text())
    assert len(registry.kinds) > 100
    assert program(framework, "registry.py", framework, "--check", str(TABLES[framework])) == ""


def test_what_is_new_gone_or_of_another_kind_is_named() -> None:
    current = Registry("PyTorch 1.0", {"aten::exp": "exact", "aten::fft": "refused", "aten::log": "refused"})
    assert differences(KNOWN, current) == [
        "new: aten::log (refused)",
        "gone: aten::add",
        "changed: aten::exp (exact, was defined)",
    ]
    assert differences(KNOWN, KNOWN) == []


def test_another_version_is_one_line() -> None:
    current = Registry("PyTorch 1.1", KNOWN.kinds | {"aten::log": "refused"})
    assert differences(KNOWN, current) == ["PyTorch 1.1, the table is of PyTorch 1.0; new: aten::log (refused)"]
    same = Registry("PyTorch 1.1", KNOWN.kinds)
    assert differences(KNOWN, same) == ["PyTorch 1.1, the table is of PyTorch 1.0; the same operations"]


def test_a_table_has_what_was_written() -> None:
    assert read(written(KNOWN)) == KNOWN
