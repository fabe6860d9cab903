"""docs/causes.py: the page of causes is that of the rules."""

import importlib.util
from pathlib import Path

import pytest

from support.runs import ROOT


@pytest.fixture
def causes():
    spec = importlib.util.spec_from_file_location("docs_causes", ROOT / "docs" / "causes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_rules(causes) -> None:
    assert causes.main(write=False) == 0


def test_an_old_page_is_named_and_written_anew(
    causes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(causes, "PAGE", tmp_path / "causes.md")
    causes.PAGE.write_text("# Causes\n\n<!-- causes -->\nold\n<!-- end -->\n\nAfter.\n")
    assert (
        causes.main(write=False) == 1
        and "docs/reference/causes.md: its tables are out of date" in capsys.readouterr().out
    )
    assert causes.main(write=True) == 0 and causes.main(write=False) == 0
    page = causes.PAGE.read_text()
    assert "| generator not restored |" in page and page.startswith("# Causes") and page.endswith("After.\n")
