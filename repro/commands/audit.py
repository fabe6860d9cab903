"""The command `audit`: parts of a receipt's training, done again on this machine."""

import argparse
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands import command_options
from repro.commands.parser import Parser
from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE, UsageError
from repro.text import RUN, counted, printable

if TYPE_CHECKING:
    from repro.receipt.audit import Auditor, Outcome
    from repro.receipt.segments import Segment

ALL = "all"
NOT_SHOWN = (
    "What it does not show: that the data were chosen honestly, that nothing was trained before, nor anything of segments "
    "that were not drawn."
)
EPILOG = f"""The command goes on from a checkpoint, as that of `repro verify --resume`. {RUN} in it
stands for a folder that holds the files of the checkpoint. The first segment is done by
the command of the receipt, or by --start. Scripts and data in the current folder must be
those of the receipt.

Exit codes: 0 same; 1 the receipt cannot be believed; 3 differs; 4 inconclusive."""


def parser() -> Parser:
    made = Parser(
        "audit",
        "do parts of a receipt's training again on this machine, and compare",
        (f"repro audit [OPTIONS] RECEIPT RECORD -- COMMAND {RUN} --resume",),
        run,
        epilog=EPILOG,
    )
    made.takes_command = True
    made.add_argument(
        "paths", nargs="*", type=Path, metavar="RECEIPT RECORD", help="the receipt, and the folder of its record"
    )
    start = "command that begins the training, quoted as one argument (default: that of the receipt)"
    made.add_argument("--start", metavar="COMMAND", help=start)
    segments = "segments between two checkpoints to draw, or all (default: 3)"
    made.add_argument("--segments", default="3", metavar="N|all", help=segments)
    made.add_argument(
        "--seed", type=int, metavar="N", help="seed of the draw (default: one that nobody can know before)"
    )
    command_options.add_signer(made)
    made.add_argument(
        "--key", type=Path, metavar="FILE", help="your own SSH key, named in audit.json (default: as `repro receipt`)"
    )
    command_options.add_cube(made, parameters=False)
    made.add_argument("--trust", action="store_true", help="run what the receipt names without asking")
    made.add_argument("--image", metavar="IMAGE", help="Docker image or FILE.sif to run it in, without a network")
    made.add_argument("--to", type=Path, metavar="DIR", help="folder for the audit (default: repro-records/audit-TIME)")
    return made


def run(options: argparse.Namespace) -> int:
    """Audits; the exit code is 0 where all that was drawn is the same, 3 where something differs, else 4."""
    paths = options.paths
    if len(paths) != 2:
        raise UsageError(
            f"audit: a receipt and the folder of its record must be given, not {len(paths)} paths (see repro audit --help)"
        )
    if options.mlcube is not None:
        if options.cube_task is None or options.command:
            raise UsageError("audit: --mlcube needs --task, and takes no command after --")
    elif not options.command:
        raise UsageError(
            f"audit: no command that resumes; put it after --, as in: -- python train.py --out {RUN} --resume"
        )
    from repro.console import log_to_console
    from repro.files import current_folder
    from repro.receipt import receipt as receipts
    from repro.receipt.audit import Auditor
    from repro.receipt.consent import check_programs, consent
    from repro.receipt.segments import drawn, segments
    from repro.record.process import stop_as_interrupted

    receipt = receipts.read(paths[0], command_options.trusted(options))
    record = receipts.check_record(receipt, paths[1])
    whole = segments(receipts.checkpoints_of(record), record.steps)
    count = _count(options.segments, len(whole))
    seed = secrets.randbits(32) if options.seed is None else options.seed
    chosen = drawn(whole, count, seed)
    to = (options.to or command_options.fresh("audit-")).absolute()
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"audit: {to} already exists and is not empty; name another folder with --to")
    place = current_folder()
    command = options.command if options.mlcube is None else command_options.words(options)
    start = command if options.mlcube is not None else None
    start = start if options.start is None else command_options.split("--start", options.start, "audit")
    auditor = Auditor(receipt, record, command, to, place, receipts.portable(receipt), start, options.image)
    log_to_console()
    auditor.check(whole)
    check_programs(receipt, place)
    receipts.check_data(receipt, place)
    consent(auditor, chosen, options.trust)
    stop_as_interrupted()
    _say(f"drew {count} of {counted(len(whole), 'segment')} with --seed {seed}")
    for segment in chosen:
        _tell(auditor.audit(segment))
    return _finished(auditor, whole, options.key)


def _count(text: str, total: int) -> int:
    """The number of segments to draw. UsageError where it is none."""
    if text == ALL:
        return total
    if not text.isdecimal() or not int(text):
        raise UsageError(f"audit: --segments {text!r}: must be 1 or more, or {ALL}")
    return min(int(text), total)


def _tell(outcome: "Outcome") -> None:
    segment = outcome.segment
    start = "begun anew" if segment.start is None else f"resumed after step {segment.after}"
    _say(f"{segment.name}, {start}: {outcome.verdict}: {outcome.says} ({outcome.seconds:.1f} s)")
    if outcome.compared:
        from repro.report import comparison

        for line in comparison.told(outcome.compared).splitlines()[2:]:
            _say(f"  {line}")
    if outcome.traced and outcome.compared and outcome.compared.found:
        step = outcome.compared.found.step
        _say(
            f"  its operations are in {outcome.traced}; for those of the maker, who has `repro record --operations {step}`,"
        )
        _say("  `repro compare` of the two records names the first that differs")


def _finished(auditor: "Auditor", whole: list["Segment"], key: Path | None) -> int:
    """The sum of an audit, and its file; the exit code."""
    from repro.receipt import results
    from repro.receipt.segments import unseen

    outcomes = auditor.outcomes
    steps, seconds = sum(one.segment.steps for one in outcomes), sum(one.seconds for one in outcomes)
    verdict = results.verdict(outcomes)
    _say(
        f"{verdict}: {counted(len(outcomes), 'segment')} of {len(whole)} done again, {steps} of {auditor.record.steps} steps, {seconds:.1f} s"
    )
    left = len(whole) - len(outcomes)
    if not left:
        _say("  no segment was left out")
    for altered in (1, 2, 5, 10):
        if altered <= len(whole) and left and verdict == "same":
            chance = unseen(len(whole), len(outcomes), altered)
            _say(f"  whoever altered {counted(altered, 'segment')} stays unseen with a chance of {chance:.3g}")
    print(NOT_SHOWN, flush=True)
    path = results.write(auditor, key)
    _say(f"audit in {path}")
    return {"same": 0, "differs": NOT_REPRODUCIBLE}.get(verdict, INCONCLUSIVE)


def _say(line: str) -> None:
    print(printable(line), flush=True)
