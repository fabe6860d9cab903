"""A receipt says what a record holds, is signed by an SSH key, and is refused where it is anything else."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from receipt.conftest import TRAINING, Maker
from repro.errors import ReproError
from repro.receipt import receipt as receipts
from repro.receipt import signing, statement
from repro.record import record
from support import keys
from support.commands import repro


def payload(receipt: Path) -> dict:
    return json.loads(base64.b64decode(json.loads(receipt.read_text())["payload"]))


def test_what_a_receipt_holds(maker: Maker) -> None:
    (maker.folder / "data").mkdir()
    (maker.folder / "data" / "x.bin").write_bytes(b"abc")
    receipt = maker.sign(maker.folder / "record", "--data", "data")
    own, content = record.read(maker.folder / "record"), payload(receipt)
    statement.validate(content)
    subjects = {one["name"]: one["digest"]["sha256"] for one in content["subject"]}
    assert own.content.fingerprint == f"sha256:{subjects.pop('trained weights')}"
    assert subjects == own.outputs and [*own.outputs] == ["{run}/model.npy"]
    build = content["predicate"]["buildDefinition"]
    assert build["externalParameters"]["command"][1:] == [TRAINING, "--out", "{run}"]
    assert build["externalParameters"]["numerics"] == "native"
    read = receipts.read(receipt)
    assert [*read.scripts] == [TRAINING] and read.checkpoints == [3, 6, 9, 12]
    assert read.data == {"data/x.bin": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
    assert read.steps["annotations"]["leaves"] == 12 and str(maker.folder) not in json.dumps(content)


def test_its_check(maker: Maker) -> None:
    receipt = maker.sign(maker.folder / "record")
    words = ["receipt", "--check", str(receipt)]
    alone = repro(*words, cwd=maker.folder)
    assert alone.returncode == 0 and alone.stdout.endswith("Whose it is, --signer checks.\n")
    whole = repro(*words, "record", "--signer", "maker.pub", cwd=maker.folder)
    assert whole.returncode == 0 and "record is what was signed" in whole.stdout and "--signer" not in whole.stdout
    maker.key("other")
    wrong = repro(*words, "--signer", "other.pub", cwd=maker.folder)
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and "which other.pub does not name" in wrong.stderr


@pytest.mark.parametrize("kind", keys.KINDS)
def test_keys_of_openssh(maker: Maker, kind: str) -> None:
    path = maker.folder / kind
    keys.make(path, kind)
    done = repro("receipt", "record", "--key", kind, "--to", "signed.json", cwd=maker.folder)
    assert done.returncode == 0, done.stderr
    signed = receipts.read(maker.folder / "signed.json", signing.Trusted(f"{path}.pub"))
    assert path.with_name(f"{kind}.pub").read_text().split()[0] == signed.signed.kind


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen (openssh-client) is not installed")
@pytest.mark.parametrize("kind", keys.KINDS)
def test_a_fingerprint_is_that_of_openssh(tmp_path: Path, kind: str) -> None:
    keys.make(tmp_path / "own", kind)
    words = ["ssh-keygen", "-l", "-f", str(tmp_path / "own")]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert signing.fingerprint((tmp_path / "own.pub").read_text()) == listed.split()[1]


def test_signers_by_name(maker: Maker) -> None:
    public = Path(f"{maker.key()}.pub").read_text().strip()
    (maker.folder / "allowed").write_text(f'# ours\nme@lab namespaces="file" {public}\n')
    own = signing.fingerprint(public)
    assert signing.known(str(maker.folder / "allowed")) == {own} == signing.known(own)
    with pytest.raises(ReproError, match="holds no public key"):
        signing.known(str(maker.folder / TRAINING))


def test_a_key_with_a_passphrase_needs_a_terminal(maker: Maker) -> None:
    keys.make(maker.folder / "locked", passphrase="secret")
    done = repro("receipt", "record", "--key", "locked", cwd=maker.folder)
    assert (
        done.returncode == 2
        and done.stderr.count("\n") == 1
        and "--key locked has a passphrase; sign at a terminal" in done.stderr
    )
    assert not (maker.folder / "record" / "receipt.json").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["record", "--key", "missing"], "--key missing cannot be read"),
        (["record", "--key", TRAINING], f"--key {TRAINING} cannot be used to sign"),
        (["record", "--key", "maker", "--data", "missing"], "--data missing does not exist"),
        (["missing", "--key", "maker"], "missing holds no record"),
        ([], "no record; name the folder"),
        (["record", "--signer", "maker.pub"], "--signer and --issuer go with --check"),
        (["--check", "missing.json"], "missing.json does not exist"),
        (["--check", TRAINING], f"{TRAINING} is not a receipt"),
        (["--check", "missing.json", "--key", "maker"], "--key does not go with --check"),
    ],
)
def test_what_is_wrong_is_one_line(maker: Maker, words: list[str], why: str) -> None:
    maker.key()
    done = repro("receipt", *words, cwd=maker.folder)
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1 and why in done.stderr, done.stderr


def test_nothing_is_written_over(maker: Maker) -> None:
    receipt = maker.sign(maker.folder / "record")
    before = receipt.read_bytes()
    done = repro("receipt", "record", "--key", "maker", cwd=maker.folder)
    assert done.returncode == 2 and "already exists" in done.stderr and receipt.read_bytes() == before


def test_a_statement_for_other_signers(maker: Maker) -> None:
    done = repro("receipt", "record", "--statement", cwd=maker.folder)
    assert done.returncode == 0, done.stderr
    statement.validate(json.loads((maker.folder / "record" / "statement.json").read_text()))


def test_a_record_without_a_step_has_no_receipt(maker: Maker) -> None:
    repro("record", "--to", "empty", "--output", TRAINING, "--", "touch", TRAINING, cwd=maker.folder)
    maker.key()
    done = repro("receipt", "empty", "--key", "maker", cwd=maker.folder)
    assert done.returncode == 2 and "holds no step" in done.stderr


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_receipt_is_one_line(maker: Maker, data: st.DataObject) -> None:
    """Bytes are changed in the envelope, or a part of the statement is replaced and signed again."""
    receipt = maker.folder / "record" / "receipt.json"
    if not receipt.exists():
        maker.sign(maker.folder / "record")
    damaged = maker.folder / "damaged.json"
    if data.draw(st.booleans()):
        text = bytearray(receipt.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
        damaged.write_bytes(text)
    else:
        content = payload(receipt)
        part = data.draw(st.sampled_from(["subject", "predicateType", "_type", "predicate"]))
        values = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
        content[part] = data.draw(values | st.dictionaries(st.text(max_size=5), values, max_size=2))
        damaged.write_text(json.dumps(signing.sign(json.dumps(content).encode(), maker.key())))
    if json.loads(receipt.read_text()) == _parsed(damaged):  # white space, or the case of an escape
        return
    with pytest.raises(ReproError) as error:
        receipts.read(damaged)
    assert "\n" not in str(error.value)


def _parsed(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None
