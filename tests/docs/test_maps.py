"""The maps beside the code: a list of files, in a README or a package's docstring, has those that are there, and no others."""

import ast
import re
from pathlib import Path

import pytest

from support.runs import ROOT

TOPS = ("repro", "evidence", "tests", "benchmarks", "examples")
NAME = re.compile(r"[\w/]+\.py\b")
ENTRY = re.compile(r"((?:[\w/.]+, )*[\w/.]+) {2,}\S")
"""A line of a list: names with commas between them, two spaces or more, and what they are."""
FEWEST = 3
"""Files that a text must name to be a list of them; one that names fewer says why, not where."""


def named(text: str) -> set[str]:
    """Paths of files in Markdown or in words, as `loop/data.py`."""
    return set(NAME.findall(text))


def entries(text: str) -> set[str]:
    """The first words of the lines of a docstring's list: `data` for data.py, `operations` for a folder."""
    lines = filter(None, map(ENTRY.match, text.splitlines()))
    return {name for line in lines for name in line[1].split(", ")}


def children(folder: Path) -> set[str]:
    """The modules of a folder without their suffix, and its folders with code."""
    folders = {path.name for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"} | folders


def is_there(name: str, folder: Path) -> bool:
    """True for a path from the repository's top, or from any folder below that of the map."""
    return (ROOT / name).is_file() or any(folder.rglob(name))


def in_words(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


READMES = [path for top in TOPS for path in sorted((ROOT / top).rglob("README.md"))]
MAPS = [
    path for path in READMES if len({name for name in named(path.read_text()) if is_there(name, path.parent)}) >= FEWEST
]
PACKAGES = {
    path: ast.get_docstring(ast.parse(path.read_text())) or ""
    for top in TOPS
    for path in sorted((ROOT / top).rglob("__init__.py"))
}
LISTS = [path for path, text in PACKAGES.items() if len(entries(text)) + len(named(text)) >= FEWEST]


def test_there_are_maps() -> None:
    assert len(MAPS) > 5 and len(LISTS) > 10
    assert ROOT / "repro" / "portable" / "README.md" in MAPS
    assert {"record", "verify", "loop"} <= {path.parent.name for path in LISTS}


@pytest.mark.parametrize("readme", READMES, ids=in_words)
def test_each_file_that_a_readme_names_is_there(readme: Path) -> None:
    assert [name for name in sorted(named(readme.read_text())) if not is_there(name, readme.parent)] == []


@pytest.mark.parametrize("readme", MAPS, ids=in_words)
def test_each_file_is_on_the_map_that_is_nearest(readme: Path) -> None:
    folder, text = readme.parent, readme.read_text()
    others = [each.parent for each in [*MAPS, *LISTS] if each.parent != folder and folder in each.parents]
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


@pytest.mark.parametrize("package", LISTS, ids=in_words)
def test_the_list_of_a_docstring_is_that_of_the_folder(package: Path) -> None:
    folder, text = package.parent, PACKAGES[package]
    listed = {name.removesuffix(".py").rstrip("/") for name in entries(text) | named(text)}
    assert [
        name for name in sorted(listed) if not is_there(f"{name}.py", folder) and not (folder / name).is_dir()
    ] == []
    assert sorted(children(folder) - listed - set(re.findall(r"(\w+)/", text))) == []


def test_links_of_maps_lead_where_their_text_says() -> None:
    for readme in READMES:
        for text, target in re.findall(r"\[([\w/]+\.md)\]\(([^)#]+)", readme.read_text()):
            assert (readme.parent / target).resolve() == ROOT / text, f"{readme}: {text}"


def test_each_folder_of_the_package_is_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    folders = [ROOT / "repro", ROOT / "repro" / "trainers"]
    paths = [
        f"{folder.relative_to(ROOT)}/{name}/"
        for folder in folders
        for name in children(folder)
        if (folder / name).is_dir()
    ]
    assert [path for path in sorted(paths) if f"`{path}" not in text] == []
