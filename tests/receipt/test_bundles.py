"""A receipt that Sigstore signed: made with an identity, believed for it alone, and refused where anything in it is changed."""

import base64
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from receipt.conftest import TRAINING, Maker
from repro import __main__
from repro.errors import ReproError
from repro.receipt import bundles, signing
from repro.receipt import receipt as receipts
from repro.receipt.signing import Trusted
from repro.record import record
from repro.verify import audits
from support import keys, sigstore_server
from support.commands import REPRO, environment, program, repro
from support.runs import HANG
from support.sigstore_server import WHO, Sigstore

OURS = ["--trust-config", "trust.json"]
RECEIPT = "record/receipt.sigstore.json"
CHECK = ["receipt", "--check", RECEIPT, *OURS]
WORKFLOW = "https://ci.example.com/train.yml"


@pytest.fixture(scope="module")
def sigstore() -> Iterator[Sigstore]:
    with sigstore_server.serving() as server:
        yield server


@pytest.fixture
def ours(maker: Maker, sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """A maker who trusts our Sigstore, and nowhere else says who he is."""
    (maker.folder / "trust.json").write_text(sigstore.config())
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "BUILDKITE", bundles.TOKEN):
        monkeypatch.delenv(name, raising=False)
    return maker


@pytest.fixture(scope="module")
def bundle(recorded: Path, sigstore: Sigstore, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What Sigstore signs of the record."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "trust.json").write_text(sigstore.config())
    return json.dumps(_signed_by(folder, sigstore, receipts.make(record.read(recorded), [], folder))).encode()


@pytest.fixture
def signed(ours: Maker, bundle: bytes) -> Maker:
    """The record with a receipt by Sigstore."""
    (ours.folder / RECEIPT).write_bytes(bundle)
    return ours


def _signed_by(folder: Path, server: Sigstore, payload: bytes) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(bundles.TOKEN, server.token())
        return bundles.sign(payload, folder / "trust.json")


def test_a_token_signs(ours: Maker, sigstore: Sigstore) -> None:
    done = repro("receipt", "record", "--sigstore", *OURS, cwd=ours.folder, **{bundles.TOKEN: sigstore.token()})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert f"signed by   {WHO}, {sigstore.url} (Sigstore)\n" in done.stdout
    assert (ours.folder / RECEIPT).exists()


def test_its_check_needs_no_network_and_says_who(ours: Maker) -> None:
    with sigstore_server.serving() as server:
        (ours.folder / "trust.json").write_text(server.config())
        payload = receipts.make(record.read(ours.folder / "record"), [], ours.folder)
        (ours.folder / RECEIPT).write_text(json.dumps(_signed_by(ours.folder, server, payload)))
    alone = repro(*CHECK, cwd=ours.folder)
    assert alone.returncode == 0 and alone.stdout.endswith("Whose it is, --signer checks.\n"), alone.stderr
    assert alone.stderr == ""
    whole = repro(*CHECK, "record", "--signer", WHO, "--issuer", server.url, cwd=ours.folder)
    assert whole.returncode == 0 and "record is what was signed" in whole.stdout and "--signer" not in whole.stdout


def test_the_identity_of_a_workflow(ours: Maker, sigstore: Sigstore) -> None:
    """CI gives a token to whoever asks for one at its address, as GitHub's does."""
    variables = {"GITHUB_ACTIONS": "true", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "1"}
    variables["ACTIONS_ID_TOKEN_REQUEST_URL"] = f"{sigstore.url}/ci"
    done = repro("receipt", "record", "--sigstore", *OURS, cwd=ours.folder, **variables)
    assert done.returncode == 0 and f"signed by   {WORKFLOW}, " in done.stdout, done.stderr
    known = repro(*CHECK, "--signer", WORKFLOW, "--issuer", sigstore.url, cwd=ours.folder)
    assert known.returncode == 0, known.stderr
    variables.pop("ACTIONS_ID_TOKEN_REQUEST_URL")
    refused = repro("receipt", "record", "--sigstore", "--to", "x", *OURS, cwd=ours.folder, **variables)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "no identity" in refused.stderr


def test_at_a_terminal_a_browser_asks(ours: Maker) -> None:
    """The browser is a program that follows the pages to their end."""
    program(ours.folder / "bin", "browse", "import urllib.request\nurllib.request.urlopen(words[0]).read()")
    ends = pty.openpty()
    path = f"{ours.folder / 'bin'}:{environment()['PATH']}"
    done = subprocess.run(
        [*REPRO, "receipt", "record", "--sigstore", *OURS],
        cwd=ours.folder,
        env=environment() | {"PATH": path, "BROWSER": "browse %s"},
        stdin=ends[1],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    for end in ends:
        os.close(end)
    assert done.returncode == 0 and f"signed by   {WHO}, " in done.stdout, done.stderr


def test_audits_and_disputes_take_it(signed: Maker, sigstore: Sigstore) -> None:
    known = ["--signer", WHO, "--issuer", sigstore.url, *OURS]
    command = ["--", sys.executable, TRAINING, "--out", "{run}", "--resume"]
    words = ["audit", RECEIPT, "record", "--seed", "1", "--segments", "1", "--key", str(signed.key("auditor"))]
    done = repro(*words, *known, "--to", "own", *command, cwd=signed.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    audit = audits.read(signed.folder / "own" / "audit.json")
    assert audit.signer == f"{WHO}, {sigstore.url}" and not audit.by_another  # who recorded it here is who signed it
    home = str(signed.folder / "home")
    done = repro(*words, *known, "--trust", "--to", "other", *command, cwd=signed.folder, XDG_DATA_HOME=home)
    assert done.returncode == 0 and audits.read(signed.folder / "other" / "audit.json").by_another
    repro("dispute", "record", "--to", "1.json", cwd=signed.folder)
    words = ["dispute", "record", "1.json", "--receipt", RECEIPT, *OURS]
    answered = repro(*words, "--signer", WHO, "--issuer", sigstore.url, "--to", "2.json", cwd=signed.folder)
    assert answered.returncode == 0 and "hold the same steps" in answered.stdout, answered.stderr
    refused = repro(*words, "--signer", WHO, "--issuer", "https://x", "--to", "3.json", cwd=signed.folder)
    assert refused.returncode == 1 and "does not name" in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([*CHECK, "--signer", WHO], f"--signer {WHO} needs --issuer"),
        ([*CHECK, "--signer", WHO, "--issuer", "https://accounts.google.com"], "accounts.google.com does not name"),
        ([*CHECK, "--signer", "other@example.com", "--issuer", "URL"], "other@example.com, http"),
        ([*CHECK, "--issuer", "URL"], "--issuer goes with --signer"),
        ([*CHECK[:3]], "cannot be believed"),
        ([*CHECK[:3], "--trust-config", TRAINING], f"--trust-config {TRAINING} names no Sigstore"),
        ([*CHECK[:3], "--trust-config", "missing"], "--trust-config missing cannot be read"),
        ([*CHECK, "--sigstore"], "--sigstore does not go with --check"),
        (["receipt", "--check", "key.json", "--issuer", "URL", "--signer", "maker.pub"], "--issuer goes with one"),
        (["receipt", "--check", "key.json", *OURS], "--trust-config goes with one"),
        (["receipt", "record", *OURS], "--trust-config goes with --sigstore"),
        (["receipt", "record", "--issuer", "URL"], "--signer and --issuer go with --check"),
        (["receipt", "record", "--sigstore", "--key", "maker"], "--sigstore does not go with --key"),
        (["receipt", "record", "--sigstore", *OURS], "record/receipt.sigstore.json already exists"),
        (["receipt", "record", "--sigstore", "--to", "x", *OURS], "no identity to sign with"),
    ],
)
def test_what_is_wrong_is_one_line(
    signed: Maker,
    sigstore: Sigstore,
    words: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    keys.make(signed.folder / "maker")
    payload = receipts.make(record.read(signed.folder / "record"), [], signed.folder)
    receipts.write(signed.folder / "key.json", signing.sign(payload, signed.folder / "maker"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(signed.folder))  # the library keeps the public Sigstore's keys there
    monkeypatch.chdir(signed.folder)
    code = __main__.main([sigstore.url if word == "URL" else word for word in words])
    said = capfd.readouterr().err
    assert code in (1, 2) and said.count("\n") == 1 and why in said, said


@pytest.mark.parametrize("minutes", [-1, 5])
def test_a_token_that_is_over_and_servers_that_are_gone(ours: Maker, minutes: int) -> None:
    with sigstore_server.serving() as server:
        (ours.folder / "trust.json").write_text(server.config())
    variables = {bundles.TOKEN: server.token(minutes=minutes)}
    done = repro("receipt", "record", "--sigstore", *OURS, cwd=ours.folder, **variables)
    why = "Sigstore did not sign" if minutes > 0 else "no identity to sign with"
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1 and why in done.stderr, done.stderr
    assert not (ours.folder / RECEIPT).exists()


def test_without_the_library(ours: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore.sign", None)
    with pytest.raises(ReproError, match=r"sigstore\.sign is not installed; .*repro-bits\[sigstore\]"):
        bundles.sign(b"{}", None)


def _other(bundle: bytes, **changed: str) -> bytes:
    """The statement of a bundle, with something else in it."""
    return json.dumps(json.loads(base64.b64decode(json.loads(bundle)["dsseEnvelope"]["payload"])) | changed).encode()


def test_another_predicate_is_no_receipt(signed: Maker, sigstore: Sigstore, bundle: bytes) -> None:
    payload = _other(bundle, predicateType="https://example.com/other/v1")
    path = signed.folder / "other.json"
    path.write_text(json.dumps(_signed_by(signed.folder, sigstore, payload)))
    with pytest.raises(ReproError, match="is not a receipt: its predicate is"):
        receipts.read(path, Trusted(trust_config=signed.folder / "trust.json"))


@pytest.mark.parametrize(
    "place",
    [
        ("dsseEnvelope", "payload"),
        ("dsseEnvelope", "signatures"),
        ("verificationMaterial", "certificate"),
        ("verificationMaterial", "tlogEntries"),
        ("dsseEnvelope",),
        ("verificationMaterial",),
    ],
    ids="-".join,
)
def test_a_part_of_another_bundle_is_refused(
    signed: Maker, sigstore: Sigstore, bundle: bytes, place: tuple[str, ...]
) -> None:
    """Both are signed by the same maker, and each is believed."""
    whole, other = json.loads(bundle), _signed_by(signed.folder, sigstore, _other(bundle, added="more"))
    ours, theirs = whole, other
    for key in place[:-1]:
        ours, theirs = ours[key], theirs[key]
    ours[place[-1]] = theirs[place[-1]]
    assert whole not in (other, json.loads(bundle))
    (signed.folder / RECEIPT).write_text(json.dumps(whole))
    with pytest.raises(ReproError, match="cannot be believed"):
        receipts.read(signed.folder / RECEIPT, Trusted(trust_config=signed.folder / "trust.json"))


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_bundle_says_the_same_or_is_one_line(signed: Maker, data: st.DataObject) -> None:
    """Bytes are changed, or a value is replaced. Some fields are not signed, such as the index in the whole log."""
    bundle, trusted = signed.folder / RECEIPT, Trusted(trust_config=signed.folder / "trust.json")
    damaged = signed.folder / "damaged.json"
    text = bytearray(bundle.read_bytes())
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 3))):
            text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
        damaged.write_bytes(text)
    else:
        content = part = json.loads(text)
        while True:
            key = data.draw(st.sampled_from([*part] if isinstance(part, dict) else [*range(len(part))]))
            if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.booleans()):
                break
            part = part[key]
        values = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
        part[key] = data.draw(values | st.dictionaries(st.text(max_size=5), values, max_size=2))
        damaged.write_text(json.dumps(content))
    whole = _says(bundle, trusted)
    assert whole is not None and _says(damaged, trusted) in (whole, None)


def _says(path: Path, trusted: Trusted) -> signing.Signed | None:
    """What a receipt says, and who; None where it is refused in one line."""
    try:
        return receipts.read(path, trusted).signed
    except ReproError as error:
        return None if "\n" not in str(error) else pytest.fail(str(error))
