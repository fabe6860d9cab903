"""docs/help.py: a page with an old --help is named, and written anew."""

import importlib.util
from pathlib import Path

import pytest

from support.runs import ROOT

PAGE = "# Page\n\n<!-- help: -->\n```text\n{}```\n\n<!-- help: verify -->\n```text\n{}```\n\nAfter it.\n"


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The module, with this folder's pages, and a command whose help is one line."""
    spec = importlib.util.spec_from_file_location("docs_help", ROOT / "docs" / "help.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DOCS", tmp_path)
    monkeypatch.setattr(module, "help_text", lambda command: f"help of {command}\n")
    return module


def test_an_old_page_is_named_and_written_anew(pages, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "reference" / "commands.md"
    page.parent.mkdir()
    page.write_text(PAGE.format("an old text\n", "another\n"))
    assert pages.main(write=False) == 1
    assert "docs/reference/commands.md" in capsys.readouterr().out
    assert page.read_text() == PAGE.format("an old text\n", "another\n")
    assert pages.main(write=True) == 0
    assert page.read_text() == PAGE.format("help of \n", "help of verify\n")
    assert pages.main(write=False) == 0
