"""audit.json: what an audit came to, for `repro report` and for others."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from repro.machine import facts
from repro.receipt import signing
from repro.receipt.audit import Auditor, Outcome, Verdict
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
        auditor=signing.own_fingerprint(key),
        segments=[
            audits.Segment(first=one.segment.after + 1, last=one.segment.last, verdict=one.verdict)
            for one in auditor.outcomes
        ],
        receipt=ReceiptHash(sha256=receipt.sha256),
    )
    audits.write(path, content)
    return path
