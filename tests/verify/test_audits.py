"""audit.json: written, read, and what is refused."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from repro.errors import ReproError, UsageError
from repro.verify import audits
from repro.verify.audits import Segment
from support.answered import OURS, audit


def test_written_and_read(tmp_path: Path):
    path = tmp_path / "audit.json"
    audits.write(path, audit())
    content = audits.read(path)
    assert structs.replace(content, seal="") == audit() and content.by_another
    assert json.loads(path.read_text())["kind"] == "audit"


def test_whose_keys_are_known():
    assert not any(audit(**keys).by_another for keys in ({"signer": None}, {"auditor": None}, {"auditor": OURS}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"segments": []}, "the verdict is 'same', which does not follow from 0 segments"),
        ({"segments": [Segment(0, 1, "same"), Segment(1, 2, "inconclusive")]}, "does not follow from 2 segments"),
        ({"verdict": "inconclusive", "segments": [Segment(0, 1, "differs")]}, "though a segment differs"),
        ({"segments": [Segment(3, 2, "same")]}, "a segment goes from step 3 to step 2"),
        ({"verdict": "perhaps"}, "Invalid enum value 'perhaps'"),
        ({"signer": "ssh-ed25519 AAAA"}, "signer"),
        ({"kind": "receipt"}, "kind"),
        ({"date": "yesterday"}, "date"),
    ],
)
def test_what_contradicts_itself_is_refused(changes: dict, said: str, tmp_path: Path):
    with pytest.raises(ReproError, match=rf"^audit: .*audit.json contradicts itself or the schema: .*{said}"):
        audits.write(tmp_path / "audit.json", audit(**changes))
    assert not list(tmp_path.iterdir())


def test_an_edited_file_is_refused(tmp_path: Path):
    path = tmp_path / "audit.json"
    audits.write(path, audit(verdict="differs"))
    path.write_text(path.read_text().replace('"differs"', '"same"'))
    with pytest.raises(ReproError, match="was changed after it was written"):
        audits.read(path)
    with pytest.raises(UsageError, match=r"audit: .*none\.json does not exist"):
        audits.read(tmp_path / "none.json")
