"""A model card keeps all but the facts of a training; a bill of materials is valid, and takes no file's place."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from repro import __version__
from repro.errors import ReproError, UsageError
from repro.report import model_card
from repro.report.levels import Levels, levels
from repro.report.published import facts, one_training
from support.commands import repro
from support.results_files import results, sealed, sha256

TRAINING = Levels(
    framework="command",
    numerics="python train.py",
    fingerprint=sha256("weights"),
    level=0,
    rows=levels([sealed(results("portable"))])[0].rows,
    date="2026-11-21T14:00:00+00:00",
    versions={"python": "3.12.1", "torch": "2.10", "typing_extensions": "4"},
    commit="1234abcd",
    dirty=False,
)
FACTS = facts(TRAINING)
BLOCK = model_card._lines(FACTS, "\n", "{}")


def test_the_facts() -> None:
    assert [*FACTS] == [
        "fingerprint",
        "level",
        "level_name",
        "date",
        "commit",
        "dirty",
        "verified_with",
        "versions",
    ]
    assert yaml.safe_load(BLOCK) == {"repro": FACTS}
    assert BLOCK.startswith(f"repro:\n  fingerprint: {FACTS['fingerprint']}\n  level: 0\n")
    assert FACTS["versions"]["torch"] == "2.10"  # and not the number 2.1
    assert "\n    torch: '2.10'\n" in BLOCK


# --- the card -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Model\n\ntext", f"---\n{BLOCK}---\n# Model\n\ntext"),
        ("", f"---\n{BLOCK}---\n"),
        ("---\n---\n# Model\n", f"---\n{BLOCK}---\n# Model\n"),
        (
            "---\nlicense: mit  # so it is\ntags:\n- a\n\n---\n\n---\nrule\n---\n",
            f"---\nlicense: mit  # so it is\ntags:\n- a\n\n{BLOCK}---\n\n---\nrule\n---\n",
        ),
        (
            "\n---\nrepro:\n  fingerprint: old\n  versions: {a: 1}\n# of the licence\nlicense: mit\n---",
            f"\n---\n{BLOCK}# of the licence\nlicense: mit\n---",
        ),
        ("---\r\nname: ü\r\n---\r\nx\n", "---\r\nname: ü\r\n" + BLOCK.replace("\n", "\r\n") + "---\r\nx\n"),
        ("a\r\nb\r\n", "---\r\n" + BLOCK.replace("\n", "\r\n") + "---\r\na\r\nb\r\n"),
    ],
)
def test_all_else_in_a_card_stays_byte_for_byte(before: str, after: str, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_bytes(before.encode())
    for _ in range(2):  # the second time changes nothing
        model_card.update(card, [TRAINING])
        assert card.read_bytes() == after.encode()
    assert [*tmp_path.iterdir()] == [card]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"---\na: [\n---\n", "its front matter is not valid YAML: while parsing"),
        (b"---\na: 1\n a: 2\n---\n", "its front matter is not valid YAML: mapping values"),
        (b"---\na: 2026-99-99\n---\n", "its front matter is not valid YAML: month must be"),
        (b"---\n- a\n---\n", "its front matter holds no keys"),
        (b"---\na: 1\n", "its front matter has no end"),
        (b"--- \na: 1\n---\n", "its front matter has no end, or does not begin with a line `---`"),
        (b"\xef\xbb\xbf---\na: 1\n---\n", "its front matter has no end, or does not begin"),
        (b"---\n{a: 1}\n---\n", "with the key repro it is not valid YAML"),
        (b"---\nrepro: {a: 1,\nb: 2}\n---\n", "its key repro is not as this command writes it"),
        (b"---\n'repro': {}\nlicense: &x mit\n---\n", "its key repro is not as this command writes it"),
        (b"---\nrepro: &x\n  a: 1\nb: *x\n---\n", "with the key repro it is not valid YAML"),
        (b"---\nrepro:\n- a\n---\n", "with the key repro it is not valid YAML"),
        (b"\xff\n", "it is not text in UTF-8"),
    ],
)
def test_a_card_that_cannot_be_read_is_left_as_it_is(content: bytes, why: str, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_bytes(content)
    with pytest.raises(ReproError) as raised:
        model_card.update(card, [TRAINING])
    assert str(raised.value).startswith(f"report: --model-card {card}: {why}")
    assert str(raised.value).endswith("; the file is left as it is") and "\n" not in str(raised.value)
    assert card.read_bytes() == content


def test_the_mode_of_a_card_and_a_link_to_it_stay(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("x\n")
    (tmp_path / "real.md").chmod(0o640)
    card = tmp_path / "README.md"
    card.symlink_to("real.md")
    model_card.update(card, [TRAINING])
    assert card.is_symlink() and card.read_text().endswith("---\nx\n")
    assert stat.S_IMODE(card.stat().st_mode) == 0o640


def test_no_card_is_made_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it does not exist; name the card of the model"):
        model_card.update(tmp_path / "README.md", [TRAINING])


def test_results_must_be_about_one_training_that_was_seen() -> None:
    with pytest.raises(UsageError, match="--bom: the results are about 2 trainings; name results of one"):
        one_training([TRAINING, TRAINING], "--bom")
    with pytest.raises(UsageError, match="--bom: the results are about no trainings"):
        one_training([], "--bom")
    unseen = Levels(**{name: getattr(TRAINING, name) for name in TRAINING.__struct_fields__} | {"fingerprint": None})
    with pytest.raises(UsageError, match="has no fingerprint, as nothing of it was seen; verify it with --output"):
        one_training([unseen], "--model-card")


def test_hugging_face_reads_the_card(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\nlibrary_name: x\n---\n# Model\n")
    model_card.update(card, [TRAINING])
    loaded = hub.ModelCard.load(card)
    assert loaded.data.to_dict() == {"license": "mit", "library_name": "x", "repro": FACTS}
    assert loaded.text == "# Model\n"


# --- the bill of materials ------------------------------------------------------------------------------------------


@pytest.fixture
def bom() -> Any:
    pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed")
    from repro.report import bom

    return bom


def strict_errors(text: str) -> Any:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_7).validate_str(text)


def test_a_bill_is_valid_and_the_same_again(bom: Any, tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        bom.write(tmp_path / name / "resnet.cdx.json", [TRAINING])
        texts.append((tmp_path / name / "resnet.cdx.json").read_text())
    assert texts[0] == texts[1]
    assert strict_errors(texts[0]) is None
    assert strict_errors(texts[0].replace('"machine-learning-model"', '"model"')) is not None  # it can fail
    content = json.loads(texts[0])
    model = content["metadata"]["component"]
    assert (content["specVersion"], model["type"], model["name"]) == ("1.7", "machine-learning-model", "resnet")
    held = {one["name"].removeprefix("repro:"): one["value"] for one in model["properties"]}
    assert held == {name: bom._text(value) for name, value in FACTS.items() if name != "versions"}
    assert {one["name"]: one["version"] for one in content["components"]} == TRAINING.versions
    assert [one["name"] for one in content["metadata"]["tools"]["components"]] == ["repro-bits"]
    (edges,) = [one["dependsOn"] for one in content["dependencies"] if one["ref"] == "model"]
    assert sorted(edges) == ["pkg:pypi/torch@2.10", "pkg:pypi/typing-extensions@4", "python@3.12.1"]


def test_a_bill_takes_no_files_place(bom: Any, tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_text("{}")
    (tmp_path / "link.json").symlink_to("nowhere")
    for name in ("bom.json", "link.json"):
        with pytest.raises(UsageError, match="it already exists, and is left as it is; name another file"):
            bom.write(tmp_path / name, [TRAINING])
    assert path.read_text() == "{}"


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_both(bom: Any, tmp_path: Path) -> None:
    training = [sys.executable, "-c", "open('model.bin', 'w').write('weights')"]
    verified = repro("verify", "--to=v", "--ask=restart", "--output=model.bin", "--", *training, cwd=tmp_path)
    assert verified.returncode == 0, verified.stderr
    (tmp_path / "README.md").write_text("# Model\n")
    published = ("--model-card=README.md", "--bom=model.cdx.json")
    done = repro("report", "v/results.json", *published, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = yaml.safe_load((tmp_path / "README.md").read_text().split("---\n")[1])["repro"]
    assert (content["level"], content["level_name"]) == (1, "again")
    assert content["verified_with"] == f"repro-bits {__version__}"
    bill = (tmp_path / "model.cdx.json").read_text()
    assert strict_errors(bill) is None and content["fingerprint"] in bill
    again = repro("report", "v/results.json", *published, cwd=tmp_path)
    assert (again.returncode, (tmp_path / "model.cdx.json").read_text()) == (2, bill)


@pytest.mark.parametrize(
    ("option", "module", "extra"), [("--bom", "cyclonedx", "bom"), ("--model-card", "yaml", "card")]
)
def test_a_missing_package_is_named_with_its_extra(
    option: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from repro.commands.report import _extra

    monkeypatch.setitem(sys.modules, module, None)
    said = f"report: {option} needs the package {module}; install it with: pip install 'repro-bits\\[{extra}\\]'"
    with pytest.raises(ReproError, match=said), _extra(option, extra):
        __import__(module)
