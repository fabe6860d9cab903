"""The signature of a record: with a key that nobody else can read, of all that it holds."""

import json
from pathlib import Path

import pytest

from repro.record import signature

CONTENT = {"schema": 1, "command": ["python", "train.py"], "facts": {"environment": {"OMP_NUM_THREADS": "1"}}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def test_the_key_is_made_at_first_use_and_for_its_user_alone() -> None:
    assert not signature.is_own(CONTENT) and not signature.place().exists()  # what only reads makes none
    result = signature.signed(CONTENT)
    assert signature.is_own(json.loads(json.dumps(result)))
    assert (signature.place().stat().st_mode & 0o777, signature.place().parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in signature.place().parent.iterdir()] == ["key"]
    assert signature.signed(CONTENT) == result


@pytest.mark.parametrize(
    "changed",
    [
        {"command": ["sh", "-c", "x", "train.py"]},
        {"facts": {"environment": {"OMP_NUM_THREADS": "1", "PATH": "/x"}}},
        {"more": 1},
        {"signature": "0" * 64},
        {"signature": "\udc80"},
        {"signature": None},
    ],
)
def test_what_was_changed_is_not_ones_own(changed: dict) -> None:
    assert not signature.is_own(signature.signed(CONTENT) | changed)


def test_an_old_one_has_none() -> None:
    signature.signed(CONTENT)
    assert not any(map(signature.is_own, (CONTENT, [], "x", None)))


def test_another_users_key() -> None:
    result = signature.signed(CONTENT)
    signature.place().unlink()
    assert not signature.is_own(result)
    assert signature.signed(CONTENT)["signature"] != result["signature"] and not signature.is_own(result)


def test_a_key_that_others_can_read_signs_nothing_and_stays() -> None:
    result = signature.signed(CONTENT)
    before = signature.place().read_bytes()
    signature.place().chmod(0o640)
    assert signature.signed(CONTENT) == CONTENT and not signature.is_own(result)
    assert signature.place().read_bytes() == before


def test_without_a_place_for_a_key_a_record_is_written_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "data").write_text("a file")
    assert signature.signed(CONTENT) == CONTENT
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert signature.signed(CONTENT) == CONTENT


def test_a_relative_folder_does_not_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "stranger")
    monkeypatch.setenv("HOME", str(home))
    assert signature.place() == home / ".local" / "share" / "repro" / "key"
