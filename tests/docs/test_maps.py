"""The maps beside the code: each README of a folder names the files that are there, and no others."""

import re
from pathlib import Path

import pytest

from support.runs import ROOT

MAPS = sorted((ROOT / "repro").rglob("README.md"))
NAME = re.compile(r"[\w/]+\.py\b")


def named(readme: Path) -> set[str]:
    return set(NAME.findall(readme.read_text()))


def is_there(name: str, folder: Path) -> bool:
    """Whether a path from the repository's top, or from any folder below that of the map."""
    return (ROOT / name).is_file() or any(folder.rglob(name))


def in_words(readme: Path) -> str:
    return str(readme.parent.relative_to(ROOT))


@pytest.mark.parametrize("readme", MAPS, ids=in_words)
def test_each_file_that_a_map_names_is_there(readme: Path) -> None:
    assert [name for name in sorted(named(readme)) if not is_there(name, readme.parent)] == []


@pytest.mark.parametrize("readme", MAPS, ids=in_words)
def test_each_file_is_on_the_map_that_is_nearest(readme: Path) -> None:
    folder, text = readme.parent, readme.read_text()
    others = [each.parent for each in MAPS if each != readme and folder in each.parents]
    words = {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[\w.]+", span)}
    missing = [
        str(file)
        for file in sorted(path.relative_to(folder) for path in folder.rglob("*.py"))
        if not any(other in (folder / file).parents for other in others)
        and file.name != "__init__.py"
        and not {file.name, file.stem} & words
        and not any(f"`{part.name}/`" in text for part in file.parents if part.name)
    ]
    assert missing == []


def test_links_of_maps_lead_where_their_text_says() -> None:
    for readme in MAPS:
        for text, target in re.findall(r"\[([\w/]+\.md)\]\(([^)#]+)", readme.read_text()):
            assert (readme.parent / target).resolve() == ROOT / text, f"{readme}: {text}"
