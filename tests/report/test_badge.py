"""The badge: what it claims, of what, and in which colour."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from msgspec import structs

from repro.errors import ReproError, UsageError
from repro.report import badge, report
from repro.report.levels import Levels, levels
from repro.verify import audits, results
from repro.verify.questions import AnswerWord
from support.answered import ALL_SAME, audit, verified

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(*trainings: Levels) -> ElementTree.Element:
    return ElementTree.fromstring(badge.svg(trainings))


def text(root: ElementTree.Element, name: str) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NAMESPACE}{name}")]


def said(root: ElementTree.Element) -> str:
    return " ".join(text(root, "text"))


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("resume", "level 1 · again"),
        ("threads", "level 2 · resumed and killed"),
        ("instruction_set", "level 3 · other thread counts"),
        ("container", "level 4 · other instruction sets"),
        ("", "level 5 · another machine or container"),
    ],
)
def test_it_names_the_level_and_what_it_holds_for(left_out: str, message: str):
    answers: dict[str, AnswerWord] = {name: word for name, word in ALL_SAME.items() if name != left_out}
    root = drawn(*levels([verified(answers)]))
    assert said(root) == f"reproducible {message}" and text(root, "title") == [f"reproducible | {message}"]
    assert (root.get("role"), root.get("aria-label")) == ("img", f"reproducible: {message}")
    (facts,) = text(root, "desc")
    assert facts.startswith(f"Level {message[6]} of 6: {message[10:]}. Not level {int(message[6]) + 1}")
    assert "; 2026-11-28; PyTorch 2.15.0; commit c0ffee; fingerprint sha256:" in facts


def test_changes_are_said():
    (one,) = levels([verified(ALL_SAME)])
    assert "commit c0ffee and changes;" in text(drawn(structs.replace(one, dirty=True)), "desc")[0]


def test_without_a_level_it_has_another_word_and_colour():
    def colour(*trainings: Levels) -> str:
        return drawn(*trainings).findall(f"{NAMESPACE}rect")[0].attrib["fill"]

    known = [level for word in ("differs", "cannot tell") for level in levels([verified({"restart": word})])]
    (reached,) = levels([verified(ALL_SAME)])
    assert [said(drawn(one)) for one in known] == ["training not reproducible", "training not verified"]
    assert said(drawn()) == "training not verified"
    assert len({colour(reached), *map(colour, known)}) == 3 and colour() == colour(known[1])


def test_of_several_the_lowest_counts():
    high, low = levels([verified(ALL_SAME, commit="a")]), levels([verified({"restart": "same"}, commit="b")])
    for trainings in ([*high, *low], [*low, *high]):
        root = drawn(*trainings)
        assert said(root) == "reproducible level 1 · again"
        assert (
            text(root, "desc")[0].endswith("; the lowest level of 2 trainings") and "commit b" in text(root, "desc")[0]
        )
    none = [one for word in ("cannot tell", "differs") for one in levels([verified({"restart": word})])]
    assert said(drawn(*none, *high)) == "training not reproducible"


def test_what_a_stranger_wrote_is_text():
    (one,) = levels([verified(ALL_SAME)])
    hostile = "</desc><script>alert(1)</script>&\"'"
    root = drawn(structs.replace(one, commit=hostile, versions={"torch": hostile}, fingerprint=hostile))
    assert text(root, "desc")[0].count(hostile) == 3 and not list(root.iter(f"{NAMESPACE}script"))


def test_the_text_fits_its_half():
    for one in levels([verified(ALL_SAME)], [audit()]):
        root = drawn(one)
        halves = root.findall(f".//{NAMESPACE}text")
        assert sum(float(half.attrib["textLength"]) + 12 for half in halves) == float(root.attrib["width"])


# --- beside the page --------------------------------------------------------------------------------------------------


def test_an_edited_file_gets_no_badge(tmp_path: Path):
    path, file = tmp_path / "results.json", tmp_path / "badge.svg"
    results.write(path, verified({"restart": "not asked"}))
    report.write(tmp_path, [path], badge=file)
    assert "not verified" in file.read_text()
    before = file.read_bytes()
    path.write_text(re.sub("not asked", "same", path.read_text()))
    with pytest.raises(ReproError, match="was changed after it was written"):
        report.write(tmp_path, [path], badge=file)
    assert file.read_bytes() == before


def test_an_audit_beside_the_results(tmp_path: Path):
    path, audited = tmp_path / "results.json", tmp_path / "audit.json"
    results.write(path, verified({"restart": "not asked"}))
    audits.write(audited, audit())
    made = report.write(tmp_path, [path, audited])
    assert [(row.answer, row.reached) for row in made.levels[0].rows][-1] == ("same", False)


def test_an_audit_in_the_folder_of_the_results(tmp_path: Path):
    folder = tmp_path / "verify-1"
    folder.mkdir()
    results.write(folder / "results.json", verified({"restart": "not asked"}))
    audits.write(folder / "audit.json", audit())
    assert report.write(tmp_path, []).levels[0].rows[-1].answer == "same"
    assert report.write(tmp_path, [folder / "results.json"]).levels[0].rows[-1].answer == "not asked"


def test_no_badge_without_results(tmp_path: Path):
    audits.write(tmp_path / "audit.json", audit())
    with pytest.raises(UsageError, match=r"--badge .*badge.svg: no results of verify are among the files"):
        report.write(tmp_path, [tmp_path / "audit.json"], badge=tmp_path / "badge.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["audit.json"]
