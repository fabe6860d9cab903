"""A receipt: made of a record, read, and held against a record."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import ReproError
from repro.files import check_regular, write_json
from repro.receipt import bundles, signing, statement
from repro.receipt.signing import Signed, Trusted
from repro.receipt.statement import CHECKPOINT, DATA, STEPS, WEIGHTS, Descriptor
from repro.record import outputs
from repro.record import record as records
from repro.record.checkpoints import CHECKPOINTS, Checkpoint, checkpoints
from repro.record.injection import Portable
from repro.record.record import Record
from repro.structs import Flaw
from repro.text import printable

FILE, BUNDLE = "receipt.json", "receipt.sigstore.json"
ANYBODY = Trusted()
OTHER = "receipt: {folder} is not the record of {path}: {what} is not the one that was signed; ask its maker for the record again"


@dataclass(frozen=True)
class Receipt:
    """A statement, and who has signed it."""

    path: Path
    content: dict[str, Any]
    signed: Signed

    @property
    def signer(self) -> str:
        """The fingerprint of the key, or the identity."""
        return self.signed.signer

    @property
    def by_identity(self) -> bool:
        """True for a receipt that Sigstore signed."""
        return self.signed.kind == bundles.KIND

    @property
    def sha256(self) -> str:
        """The SHA-256 of the statement."""
        return hashlib.sha256(self.signed.payload).hexdigest()

    @property
    def parameters(self) -> dict[str, Any]:
        """What was typed: command, numerics, every."""
        return dict(self.content["predicate"]["buildDefinition"]["externalParameters"])

    @property
    def dependencies(self) -> list[Descriptor]:
        return list(self.content["predicate"]["buildDefinition"].get("resolvedDependencies", []))

    @property
    def byproducts(self) -> list[Descriptor]:
        return list(self.content["predicate"]["runDetails"].get("byproducts", []))

    @property
    def fingerprint(self) -> str:
        """That of the trained weights."""
        digest = next(one["digest"]["sha256"] for one in self.content["subject"] if one["name"] == WEIGHTS)
        return f"sha256:{digest}"

    @property
    def files(self) -> dict[str, str]:
        """The SHA-256 of each output file."""
        return {one["name"]: one["digest"]["sha256"] for one in self.content["subject"] if one["name"] != WEIGHTS}

    @property
    def steps(self) -> Descriptor:
        """The tree over the steps."""
        return next(one for one in self.byproducts if _kind(one) == STEPS)

    @property
    def checkpoints(self) -> list[int]:
        """The steps after which checkpoints were written."""
        return sorted({one["annotations"]["step"] for one in self.byproducts if _kind(one) == CHECKPOINT})

    @property
    def scripts(self) -> dict[str, str]:
        """The SHA-256 of each file that the command names."""
        return {
            one["name"]: one["digest"]["sha256"]
            for one in self.dependencies
            if "sha256" in one.get("digest", {}) and _kind(one) != DATA
        }

    @property
    def commit(self) -> str | None:
        """The commit of the code, where it lay in a repository."""
        digests = (one.get("digest", {}).get("gitCommit") for one in self.dependencies)
        return next((f"commit {digest[:12]}" for digest in digests if digest), None)

    @property
    def data(self) -> dict[str, str]:
        """The SHA-256 of each file of data."""
        return {one["name"]: one["digest"]["sha256"] for one in self.dependencies if _kind(one) == DATA}


def make(record: Record, data: Sequence[Path], folder: Path) -> bytes:
    """The statement about a record, as it is signed; paths of data count from the folder."""
    content = statement.statement(record, statement.data(data, folder))
    statement.validate(content)
    return statement.as_bytes(content)


def write(path: Path, envelope: dict[str, Any], trusted: Trusted = ANYBODY) -> Receipt:
    """Writes what signing.sign() or bundles.sign() made, and reads it as others will."""
    write_json(path, envelope)
    return read(path, trusted)


def read(path: Path, trusted: Trusted = ANYBODY) -> Receipt:
    """A receipt whose signature is that of its content, by the trusted signer if one is named. ReproError where it is not."""
    envelope = signing.load(path)
    signed = (bundles if bundles.is_bundle(envelope) else signing).verify(path, envelope, trusted)
    try:
        content = json.loads(signed.payload)
        statement.validate(content)
        result = Receipt(path, content, signed)
        _check_types(result)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        why = printable(" ".join(str(error).split()))[:120] or "it lacks what a receipt holds"
        raise ReproError(signing.UNREADABLE.format(path=path, why=why)) from None
    return result


def _check_types(receipt: Receipt) -> None:
    """Raises where something that is read later is missing, or of another type."""
    if not isinstance(receipt.steps["annotations"]["leaves"], int):
        raise ValueError("the number of its steps is none")
    if not all(isinstance(step, int) for step in receipt.checkpoints):
        raise ValueError("the step of a checkpoint is none")
    if not all(isinstance(word, str) for word in receipt.parameters["command"]):
        raise ValueError("its command is no list of words")
    bytes.fromhex(receipt.steps["digest"]["sha256"] + receipt.fingerprint.removeprefix("sha256:"))
    _ = receipt.files, receipt.data


def check_record(receipt: Receipt, folder: Path) -> Record:
    """The record that a receipt is of, with its checkpoints. ReproError where anything in it is not what was signed."""
    record = records.read(folder)
    made = statement.statement(record)
    for what, ours, theirs in _parts(receipt.content, made):
        if ours != theirs:
            raise ReproError(OTHER.format(folder=folder, path=receipt.path, what=what))
    _check_copies(record, checkpoints_of(record))
    return record


def _parts(signed: dict[str, Any], made: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """What the two statements say, part by part; of data and the version of repro the record knows nothing."""
    sides = [signed["predicate"], made["predicate"]]
    build = [side["buildDefinition"] for side in sides]
    details = [side["runDetails"] for side in sides]
    known = [[one for one in side.get("resolvedDependencies", []) if _kind(one) != DATA] for side in build]
    kinds = {STEPS: "a step", statement.RECORD: records.FILE, CHECKPOINT: "a checkpoint"}
    byproducts = [
        (name, *([one for one in side.get("byproducts", []) if _kind(one) == kind] for side in details))
        for kind, name in kinds.items()
    ]
    return [
        *byproducts,
        ("the list of outputs", signed["subject"], made["subject"]),
        ("the command, or its numerics,", *(side["externalParameters"] for side in build)),
        ("the machine", *(side.get("internalParameters") for side in build)),
        ("the script, the commit or a version", *known),
        ("the time", *(side.get("metadata") for side in details)),
    ]


def _check_copies(record: Record, wanted: Sequence[Checkpoint]) -> None:
    copies = {file.copy: file.sha256 for one in wanted for file in one.files.values()}
    for copy, digest in copies.items():
        path = record.path / CHECKPOINTS / copy
        try:
            check_regular(path, most=1 << 50)
            same = outputs.hashes({copy: path})[copy] == digest
        except OSError as error:
            raise ReproError(
                f"receipt: {path}, a checkpoint, cannot be read ({error.strerror}); ask for the record again"
            ) from None
        if not same:
            raise ReproError(OTHER.format(folder=record.path, path="its receipt", what=f"the checkpoint {copy}"))


def checkpoints_of(record: Record) -> list[Checkpoint]:
    """The checkpoints of a record; empty where none were named."""
    changes = record.content.checkpoints
    return checkpoints(changes) if isinstance(changes, list) else []


def check_data(receipt: Receipt, folder: Path) -> None:
    """Raises ReproError where the data in a folder are not those of the training."""
    for name, digest in receipt.data.items():
        path = folder / name
        try:
            same = outputs.hashes({name: path})[name] == digest
        except OSError as error:
            raise ReproError(f"audit: {path}, which the training read, cannot be read ({error.strerror})") from None
        if not same:
            raise ReproError(f"audit: {path} is not the file that the training read: its SHA-256 is another one")


def portable(receipt: Receipt) -> Portable | None:
    """The numerics of a receipt; None for native ones. ReproError where they are none."""
    numerics = receipt.parameters["numerics"]
    try:
        return None if numerics == statement.NATIVE else Portable.from_fact(numerics)
    except Flaw as flaw:
        raise ReproError(f"audit: {receipt.path}: {flaw}") from None


def _kind(one: Descriptor) -> str | None:
    return (one.get("annotations") or {}).get("kind")
