"""The in-toto statement about a record: a predicate of SLSA provenance, https://slsa.dev/spec/v1.1/provenance.

Its subjects are the trained weights, by their fingerprint, and the output files. The build is the training: what was
typed and with which numerics are its parameters; scripts, commit, data and versions its dependencies; the tree over the
steps, the record and the checkpoints its byproducts.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import repro
from repro.errors import ReproError, UsageError
from repro.receipt import merkle
from repro.record import outputs
from repro.record.checkpoints import checkpoints
from repro.record.record import FILE, Record
from repro.text import RUN

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD, BUILDER = "urn:repro:training:1", "urn:repro:record"
WEIGHTS = "trained weights"
"""The subject whose digest is the fingerprint of a record."""
STEPS, RECORD, CHECKPOINT, DATA = "steps", "record", "checkpoint", "data"
"""The kinds of byproducts, and of dependencies that are data: annotations name them."""

NATIVE = "native"

Descriptor = dict[str, Any]


def statement(record: Record, data: Sequence[Descriptor] = ()) -> dict[str, Any]:
    """The statement about a record; `data`: what data() describes. UsageError where the record names nothing trained."""
    content = record.content
    ended = datetime.fromisoformat(content.started) + timedelta(seconds=round(content.seconds))
    return {
        "_type": TYPE,
        "subject": _subjects(record),
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {
                    "command": command(record),
                    "numerics": content.facts.get("portable_numerics") or NATIVE,
                    "every": content.every,
                },
                "internalParameters": {
                    name: content.facts.get(name) for name in ("cpu", "gpu", "threads", "environment", "container")
                },
                "resolvedDependencies": [*_sources(record), *_versions(record), *data],
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"repro": repro.__version__}},
                "metadata": {"startedOn": _time(content.started), "finishedOn": _time(ended.isoformat())},
                "byproducts": [_steps(record), _record(record), *_checkpoints(record)],
            },
        },
    }


def validate(content: Mapping[str, Any]) -> None:
    """Raises ValueError where a statement is not one of in-toto's with SLSA's provenance, ReproError without the library."""
    try:
        from google.protobuf import json_format
        from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
        from in_toto_attestation.v1 import statement_pb2
        from in_toto_attestation.v1.statement import Statement
    except ImportError as error:
        from repro.receipt.signing import MISSING

        raise ReproError(MISSING.format(name=error.name)) from None
    try:
        Statement.copy_from_pb(json_format.ParseDict(content, statement_pb2.Statement())).validate()
        json_format.ParseDict(content["predicate"], provenance_pb2.Provenance())
    except (json_format.ParseError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    if content["predicateType"] != PREDICATE:
        raise ValueError(f"its predicate is {content['predicateType']}")


def data(paths: Sequence[Path], folder: Path) -> list[Descriptor]:
    """Descriptors of files of data, and of all in folders. UsageError where one cannot be read."""
    descriptors = []
    for path in paths:
        try:
            files = outputs.matched([str(folder / path)])
            hashes = outputs.hashes(files)
        except OSError as error:
            raise UsageError(f"receipt: --data {path} cannot be read ({error.strerror})") from None
        if not files:
            raise UsageError(f"receipt: --data {path} does not exist; name a file or a folder")
        for name in files:
            inside = Path(name).relative_to(folder) if Path(name).is_relative_to(folder) else Path(name)
            descriptors.append(_descriptor(str(inside), hashes[name], kind=DATA))
    return descriptors


def command(record: Record) -> list[str]:
    """The words of the command, with `{run}` for the folder of that run."""
    run = record.content.run
    return [word.replace(run, RUN) if isinstance(run, str) else word for word in record.content.command]


def _subjects(record: Record) -> list[Descriptor]:
    fingerprint = record.content.fingerprint
    if fingerprint is None:
        raise UsageError(
            f"receipt: {record.path} holds no weights and no outputs: no step was observed, and --output named no file"
        )
    files = record.outputs | {name: file.sha256 for name, file in record.written.items() if file.final}
    weights = _descriptor(WEIGHTS, fingerprint.removeprefix("sha256:"), digest="repro fingerprint")
    return [weights, *(_descriptor(name, digest) for name, digest in sorted(files.items()))]


def _sources(record: Record) -> list[Descriptor]:
    scripts = record.facts.get("scripts") or {}
    source = record.facts.get("source") or {}
    commit = source.get("commit")
    at = [{"name": "source", "digest": {"gitCommit": commit}, "annotations": {"dirty": bool(source.get("dirty"))}}]
    return [*(_descriptor(name, digest) for name, digest in scripts.items()), *(at if commit else [])]


def _versions(record: Record) -> list[Descriptor]:
    return [
        {"name": name, "uri": f"pkg:{_kind(name)}/{name}@{version}"}
        for name, version in (record.facts.get("versions") or {}).items()
    ]


def _kind(name: str) -> str:
    """The type of a package URL: https://github.com/package-url/purl-spec."""
    return "generic" if name == "python" else "pypi"


def _steps(record: Record) -> Descriptor:
    leaves = merkle.leaves(record)
    if not leaves:
        raise UsageError(f"receipt: {record.path} holds no step; a receipt is of a training that was observed")
    return _descriptor(
        STEPS, merkle.node(leaves).hex(), kind=STEPS, leaves=len(leaves), last=record.steps, tree="RFC 9162"
    )


def _record(record: Record) -> Descriptor:
    with open(record.path / FILE, "rb") as file:
        return _descriptor(FILE, hashlib.sha256(file.read()).hexdigest(), kind=RECORD)


def _checkpoints(record: Record) -> list[Descriptor]:
    changes = record.content.checkpoints
    return [
        _descriptor(name, checkpoint.files[name].sha256, kind=CHECKPOINT, step=checkpoint.step)
        for checkpoint in (checkpoints(changes) if isinstance(changes, list) else [])
        for name in sorted(checkpoint.written)
    ]


def _descriptor(name: str, sha256: str, **annotations: Any) -> Descriptor:
    return {"name": name, "digest": {"sha256": sha256}} | ({"annotations": annotations} if annotations else {})


def _time(text: str) -> str:
    return text.replace("+00:00", "Z")


def as_bytes(content: Mapping[str, Any]) -> bytes:
    """A statement as it is signed: JSON with sorted keys and no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
