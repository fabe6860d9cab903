"""The way through the documentation: pages that are read are short, and those that are looked up are listed."""

import re
import tomllib
from pathlib import Path
from typing import Any

from support.runs import ROOT

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
LONGEST = 15_000


def pages(nav: list[dict[str, Any]]) -> list[str]:
    """Pages of a navigation, in its order."""
    entries = [entry for each in nav for entry in each.values()]
    return [page for entry in entries for page in ([entry] if isinstance(entry, str) else pages(entry))]


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(DOCS)) for path in folder.glob("*.md")}


def test_what_is_read_has_at_most_15000_words() -> None:
    read = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in read}  # as `wc -w` counts
    assert sum(words.values()) <= LONGEST, words


def test_the_navigation_has_each_page_once_and_the_reference_last() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(pages(nav)) == sorted(names(DOCS) | names(REFERENCE))
    assert set(pages([nav[-1]])) == names(REFERENCE)


def test_the_reference_lists_its_pages() -> None:
    listed = re.findall(
        r"^\| \[[^]]+\]\(([\w.]+)\)", (REFERENCE / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted([*listed, "index.md"]) == sorted(path.name for path in REFERENCE.glob("*.md"))
