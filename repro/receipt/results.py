"""audit.json: what an audit came to, for `repro report` and for others."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from repro.files import read_json
from repro.machine import facts
from repro.receipt import signing
from repro.receipt.audit import Auditor, Outcome, Verdict
from repro.record import signature
from repro.record.record import FILE
from repro.structs import converted
from repro.verify import audits
from repro.verify.audits import Audit, ReceiptHash
from repro.verify.results import Machine


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict on all segments: one that differs decides."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if "differs" in verdicts:
        return "differs"
    return "same" if verdicts == {"same"} else "inconclusive"


def write(auditor: Auditor, key: Path | None) -> Path:
    """Writes audit.json into the folder of an audit; `key`: the auditor's."""
    receipt = auditor.receipt
    path = auditor.folder / audits.KIND.file
    content = Audit(
        schema=audits.KIND.schema,
        verdict=verdict(auditor.outcomes),
        fingerprint=receipt.fingerprint,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=converted(facts.hardware() | {"platform": platform.platform()}, Machine),
        signer=receipt.signer,
        auditor=_auditor(auditor, key),
        segments=[
            audits.Segment(first=one.segment.after + 1, last=one.segment.last, verdict=one.verdict)
            for one in auditor.outcomes
        ],
        receipt=ReceiptHash(sha256=receipt.sha256),
    )
    audits.write(path, content)
    return path


def _auditor(auditor: Auditor, key: Path | None) -> str | None:
    """The fingerprint of the auditor's key; the signer, where an identity signed what this user recorded himself.

    A key and an identity are never equal, though they may be those of one person.
    """
    if auditor.receipt.by_identity and signature.is_own(read_json(auditor.record.path / FILE)):
        return auditor.receipt.signer
    return signing.own_fingerprint(key)
