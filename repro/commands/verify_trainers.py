"""The command `verify` of the reference trainers, on this machine."""

import argparse
import logging
from datetime import datetime
from pathlib import Path

from repro.commands import workspace

LISTS = ("questions", "frameworks", "numerics")

log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """Asks and prints the answers; the exit code is 3 where a promise was broken, 1 where a run failed, 4 without an answer."""
    folder, overrides = workspace.read(options, lists=LISTS)
    from repro.console import Screen, log_to_console
    from repro.record.process import stop_as_interrupted
    from repro.report import findings, tables
    from repro.trainers.loop import config, data
    from repro.trainers.verify import subject
    from repro.trainers.verify.questions import CHOICES
    from repro.trainers.verify.runs import Runner
    from repro.verify import results
    from repro.verify.results import Settings
    from repro.verify.verification import Verification

    checked = config.compose_config(folder, overrides)
    settings = checked.verify
    config.check_members("verify.questions", settings.questions, CHOICES)
    data.load(checked.data, Path(checked.output.data_path))
    log_to_console()
    stop_as_interrupted()
    target = folder / "verify" / datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")
    target.mkdir(parents=True)
    user = [item for item in overrides if not item.lstrip("+~").startswith("verify.")]
    verification = Verification(
        subject.agenda(Runner(checked, folder, user, target / "runs"), settings), settings.questions
    )
    verification()
    path = target / "results.json"
    asked = Settings(
        steps=settings.steps,
        questions=[question.name for question in subject.questions(settings.questions)],
        frameworks=settings.frameworks,
        numerics=settings.numerics,
        overrides=overrides,
    )
    content = verification.results(asked)
    try:
        results.write(path, content)
        log.info("results in %s", path)
    finally:  # what is known is shown, though the disk may be full
        tables.show(findings.build([content]), Screen())
    if verification.failure:
        raise verification.failure
    return verification.exit_code
