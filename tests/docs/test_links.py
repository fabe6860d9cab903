"""docs/links.py: a dead link and a dead path are named, and examples are left alone."""

import subprocess
from pathlib import Path

import pytest

from support.runs import ROOT

PYTHON = ROOT / ".venv" / "docs" / "bin" / "python"


def check(page: Path) -> tuple[int, list[str]]:
    """The exit code, and the lines about this page."""
    if not PYTHON.exists():
        pytest.skip("no environment .venv/docs; make it with: requirements/install.sh docs")
    command = [PYTHON, ROOT / "docs" / "links.py", page.parent / "no-site", page]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith(str(page))]


def test_dead_links_and_dead_paths_are_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "[a](gone.md) [b](#gone) `repro/gone/`, `no_such.py` ![c](https://example.org/c.png)\n\n```\nrequirements/gone.sh\n```\n"
    )
    code, lines = check(page)
    assert code == 1
    assert [line.removeprefix(f"{page}: ") for line in lines] == [
        "#gone: no such anchor",
        "gone.md: no such file",
        "loads https://example.org/c.png from another host",
        "`no_such.py`: no such path in the repository",
        "`repro/gone/`: no such path in the repository",
        "`requirements/gone.sh`: no such path in the repository",
    ]


def test_paths_of_the_repository_and_examples_are_not(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`repro/trainers/loop/data.py`, `common/switch.py`, `repro/portable/`, `requirements/NAME.in`, `workspace/outputs/x.yaml`, "
        "`{run}/model.py`, `train.py`, `tests/docs/test_links.py::check`, `~/a.py`, `and/or`"
    )
    code, lines = check(page)
    assert not lines
    assert code == 0
