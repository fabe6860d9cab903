"""audit.json: a receipt's training, done again in parts by somebody else.

`repro audit` writes it, and `repro report` reads it beside results files: the highest level rests on it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from repro import structs
from repro.structs import Checked, FileKind, Fingerprint, Hash, Integer, Struct, Time
from repro.verify.results import Machine

Verdict = Literal["same", "differs", "inconclusive"]
Signer = Annotated[str, Meta(pattern=r"\A(SHA256:[A-Za-z0-9+/]{43}=?|\S.*, https?://\S+)\Z", max_length=4096)]
"""The hash of a public key, as `ssh-keygen -l` prints it; or an identity of Sigstore, and the URL of who vouches for it."""


class Segment(Struct):
    """A part of the training that was done again: its first and its last step, and what came of it."""

    first: Integer
    last: Integer
    verdict: Verdict


class ReceiptHash(Struct):
    """The receipt that was audited."""

    sha256: Hash


class Audit(Checked, kw_only=True):
    """All that a file holds."""

    kind: Literal["audit"] = "audit"
    verdict: Verdict
    fingerprint: Fingerprint | None
    """The fingerprint of the receipt's training."""
    date: Time
    machine: Machine
    """The auditor's."""
    signer: Signer | None
    """Who signed the receipt; None if it is not signed."""
    auditor: Signer | None
    segments: list[Segment]
    receipt: ReceiptHash

    @property
    def by_another(self) -> bool:
        """True if the auditor is known, and is not who signed the receipt."""
        return self.signer is not None and self.auditor is not None and self.signer != self.auditor


def write(path: Path, content: Audit) -> None:
    """Adds the checksum, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    structs.write(KIND, path, content)


def read(path: Path) -> Audit:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    return structs.read(path, KIND)


def _contradictions(content: Audit) -> Iterator[str]:
    verdicts = [segment.verdict for segment in content.segments]
    if content.verdict == "same" and {*verdicts} != {"same"}:
        yield f"the verdict is 'same', which does not follow from {len(verdicts)} segments"
    if content.verdict != "differs" and "differs" in verdicts:
        yield f"the verdict is {content.verdict!r}, though a segment differs"
    for segment in content.segments:
        if not 0 <= segment.first <= segment.last:
            yield f"a segment goes from step {segment.first} to step {segment.last}"


KIND = FileKind("audit", "audit.json", 1, "auditor", Audit, _contradictions)
