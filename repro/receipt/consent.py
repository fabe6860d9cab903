"""What an audit runs is shown before, and must be what the receipt is of.

A stranger's program is run only where somebody who has seen the commands agrees, as with `compare --narrow`.
"""

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from repro.console import confirmed
from repro.containers import command_line
from repro.errors import ReproError, UsageError
from repro.files import read_json
from repro.receipt.audit import Auditor
from repro.receipt.receipt import Receipt
from repro.receipt.segments import Segment
from repro.record import provenance, signature
from repro.record.record import FILE

NO_CONTAINER = "not in a container; --image names one"

log = logging.getLogger(__name__)


def check_programs(receipt: Receipt, folder: Path) -> None:
    """Raises ReproError where a script that the receipt names is another one in a folder, or is not there."""
    recorded = receipt.scripts
    now = provenance.scripts(list(recorded), folder)
    for name, digest in recorded.items():
        if now.get(name) != digest:
            what = "is not the file" if name in now else "is not there, the file"
            raise ReproError(
                f"audit: {folder / name} {what} that the receipt names; check out {receipt.commit or 'the code of the training'}, and audit from its folder"
            )


def consent(auditor: Auditor, segments: Sequence[Segment], trusted: bool) -> None:
    """Shows what will be run. UsageError where it is a stranger's, and nobody says that it may be."""
    commands = dict.fromkeys(shlex.join(auditor.command(segment)) for segment in segments)
    for command in commands:
        numerics = shlex.join(auditor.portable.words) + " " if auditor.portable else ""
        log.info("will run in %s: %s%s", auditor.place, numerics, command)
    scripts = ", ".join(f"{name} ({digest[:8]})" for name, digest in auditor.receipt.scripts.items())
    contained = all(command_line.find(auditor.command(segment)) for segment in segments)
    where = f"in {auditor.image}" if auditor.image else "in a container" if contained else NO_CONTAINER
    log.info("scripts: %s; %s", scripts or "none", where)
    if trusted or signature.is_own(read_json(auditor.record.path / FILE)):
        return
    if not confirmed("Not recorded by you on this machine. Run these commands?"):
        raise UsageError(
            f"audit: nothing was run, as you have not recorded {auditor.record.path} on this machine; read the commands above, and run them with --trust"
        )
