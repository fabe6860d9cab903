"""Files of a stranger's checkpoint are put nowhere but where the command reads them, and nothing is lost."""

from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.receipt.restoring import Place, cleared
from repro.record.checkpoints import Checkpoint, CheckpointFile


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("run", "code", "record/checkpoints"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "record" / "checkpoints" / "1-1").write_text("kept")
    return Place(tmp_path / "run", tmp_path / "code")


def put(place: Place, folder: Path, *names: str) -> None:
    file = CheckpointFile(sha256="0" * 64, copy="1-1")
    place.claim(names)
    place.restore(folder / "record", Checkpoint(3, dict.fromkeys(names, file), frozenset(names)))


def test_files_are_where_the_command_reads_them(place: Place, tmp_path: Path) -> None:
    with cleared(place, tmp_path / "moved"):
        put(place, tmp_path, "{run}/a/b.pt", "out/c.pt", "d.pt")
        assert all((tmp_path / name).read_text() == "kept" for name in ("run/a/b.pt", "code/out/c.pt", "code/d.pt"))
        (tmp_path / "code" / "out" / "next.pt").write_text("by the command")
    assert [*(tmp_path / "code").iterdir()] == []
    assert (tmp_path / "moved" / "out" / "next.pt").read_text() == "by the command"
    assert (tmp_path / "run" / "a" / "b.pt").exists()


def test_what_is_the_users_stays(place: Place, tmp_path: Path) -> None:
    (tmp_path / "code" / "out").mkdir()
    (tmp_path / "code" / "out" / "mine.pt").write_text("mine")
    with cleared(place, tmp_path / "moved"):
        put(place, tmp_path, "out/c.pt")
    assert [path.name for path in (tmp_path / "code" / "out").iterdir()] == ["mine.pt"]
    with pytest.raises(UsageError, match="already exists, where a file of the training is to be put"):
        put(place, tmp_path, "out/mine.pt")
    assert (tmp_path / "code" / "out" / "mine.pt").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../out.pt", "out/../../x", "{run}/../x", "{run}", "{run}/", "", "{run}//etc/passwd", "a/../b"],
)
def test_nothing_is_put_elsewhere(place: Place, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="lies neither in"):
        put(place, tmp_path, name)
    assert sorted(tmp_path.rglob("*")) == before


def test_no_link_leads_elsewhere(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "code" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "code" / "mine.pt").symlink_to(tmp_path / "gone")
    for name in ("out/c.pt", "mine.pt"):
        with pytest.raises(UsageError, match=r"already exists|lies neither"):
            put(place, tmp_path, name)
    assert [*(tmp_path / "elsewhere").iterdir()] == []
