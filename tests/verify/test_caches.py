"""Files that are put aside for a run with emptied caches."""

from pathlib import Path

import pytest

from repro.verify import caches
from repro.verify.caches import EMPTIED, LEFT
from repro.verify.questions import BASELINE


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A cache that earlier runs have left, and one that they have not."""
    (tmp_path / "tuned").write_text("warm")
    return tmp_path / "tuned", tmp_path / "folder" / "new"


def runs(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "caches-emptied", tmp_path / "caches-as-that-run-left-them"


def test_a_run_finds_nothing_and_the_next_one_what_that_one_left(tmp_path: Path, files: tuple[Path, Path]) -> None:
    cold, warm = runs(tmp_path)
    names = {*map(str, files)}
    with caches.aside(names, cold, EMPTIED):
        assert not files[0].exists()
        files[0].write_text("cold")
        files[1].parent.mkdir()
        files[1].write_text("cold, too")
    assert files[0].read_text() == "warm" and not files[1].exists()
    assert [Path(name).name for name in caches.found(names | {str(tmp_path / "another")}, cold)] == ["new", "tuned"]
    with caches.aside(names, warm, LEFT):
        assert [file.read_text() for file in files] == ["cold", "cold, too"]
    assert files[0].read_text() == "warm"
    with caches.aside(names, tmp_path / "again", BASELINE):
        assert files[0].read_text() == "warm"


def test_a_folder_is_gone_with_its_last_file(tmp_path: Path) -> None:
    """... if no run found it there."""
    made, there = tmp_path / "made" / "within" / "a", tmp_path / "there" / "a"
    for file in (made, there):
        file.parent.mkdir(parents=True)
        file.write_text("warm")
    before = {str(tmp_path), str(there.parent)}
    with caches.aside({str(made), str(there)}, tmp_path / "caches-emptied", EMPTIED, before):
        assert not (tmp_path / "made").exists() and there.parent.exists() and not there.exists()
        made.parent.mkdir(parents=True)
    assert made.read_text() == there.read_text() == "warm"


def test_what_was_there_is_put_back_whatever_happens(tmp_path: Path, files: tuple[Path, Path]) -> None:
    cold, _ = runs(tmp_path)
    with pytest.raises(KeyboardInterrupt), caches.aside({str(files[0])}, cold, EMPTIED):
        raise KeyboardInterrupt
    assert files[0].read_text() == "warm"


def test_downloads_stay_by_a_link(tmp_path: Path) -> None:
    hub = tmp_path / "home" / ".cache" / "huggingface" / "hub"
    hub.mkdir(parents=True)
    named = caches.variables(tmp_path / "caches", {"HOME": str(tmp_path / "home"), "JAX_COMPILATION_CACHE_DIR": "/x"})
    assert (Path(named["HF_HOME"]) / "hub").resolve() == hub
    assert not any(Path(named["TRITON_CACHE_DIR"]).rglob("*"))
    assert "JAX_COMPILATION_CACHE_DIR" in named and "HF_DATASETS_CACHE" not in named
