"""results.json of a command of one's own: the suite's passport, so the page and other machines can read it."""

import json
import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repro.ask import reasons
from repro.ask.changes import Question
from repro.ask.channels import Difference
from repro.ask.judgment import Answer
from repro.ask.results import COMMAND, UNANSWERED
from repro.ask.trials import Command, Trial
from repro.run import experiment

Json = dict[str, Any]


def content(
    command: Command,
    seconds: float,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    trials: Mapping[str, Trial],
) -> Json:
    """What results.json holds of one call of `verify`; no folder of this machine is in it."""
    typed, titles = shlex.join(command.words), {question.name: question.title for question in questions}
    steps = max((trial.record.steps for trial in trials.values() if trial.record), default=0)
    return _anywhere({
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": seconds,
        "machine": experiment.machine() | {"platform": platform.platform(), "name": None},
        "settings": {
            "steps": steps, "questions": [*titles], "frameworks": [COMMAND], "numerics": [typed], "overrides": [],
        },
        "runs": {_name(label): _run(command, typed, trial) for label, trial in trials.items()},
        "answers": [_answer(answer, titles[answer.question], typed, trials) for answer in answers],
    })  # fmt: skip


def _name(label: str) -> str:
    return f"{COMMAND}/{re.sub(r'[^a-z0-9]+', '-', label.lower())}"


def _run(command: Command, typed: str, trial: Trial) -> Json:
    record, resumed = trial.record, trial.change.course != "straight"
    words = command.resume if resumed and command.resume else command.words
    words = command.with_seed(trial.change.seed) if trial.change.seed else words
    variables = [f"{name}={shlex.quote(value)}" for name, value in trial.change.environment]
    known = {"versions": {}, "scripts": {}} | (record.content["facts"] if record else {})
    return {
        "task": COMMAND, "numerics": typed, "label": trial.change.label,
        "command": " ".join([*variables, shlex.join(words)]), "status": "failed" if trial.error else "done",
        "error": trial.error, "fingerprint": record.content["fingerprint"] if record else None, "evaluation": None,
        "seconds": trial.seconds, "steps": record.steps if record else 0, "losses": [], "loss_steps": [], "metrics": [],
        "experiment": {"facts": known} if record else None,
    }  # fmt: skip


def _answer(answer: Answer, title: str, typed: str, trials: Mapping[str, Trial]) -> Json:
    answered = answer.answer not in UNANSWERED
    return {
        "question": answer.question, "title": title, "framework": COMMAND, "numerics": typed,
        "promise": answer.promised, "answer": answer.answer, "kept": answer.kept,
        "control": answer.promised == "differs", "evidence": "record", "reason": None if answered else answer.why,
        "says": (answer.why or "") if answered else "", "runs": [_name(label) for label in answer.runs],
        "difference": _difference(answer.found, trials) if answer.found else None,
    }  # fmt: skip


def _difference(found: Difference, trials: Mapping[str, Trial]) -> Json:
    """A difference in the form of results.json, where weights are all that the suite knows."""
    unknown = dict.fromkeys(("epoch", "elements", "size", "ulps", "relative", "operation"))
    records = [trial.record for trial in trials.values() if trial.record]
    sides = [one for one in records if found.pair and (found.pair.a in one.processes or found.pair.b in one.processes)]
    causes = [asdict(cause) for cause in reasons.differing_facts(*sides[:2])] if len(sides) > 1 else []
    return unknown | {
        "step": found.step, "channel": found.channel, "last_equal_step": found.equal_before,
        "tensor": found.names[0] if found.names else None, "growth": [], "causes": causes,
    }  # fmt: skip


def _anywhere(value: Json) -> Json:
    """The same without this machine's folders: the one that the command was started in is a dot, the home ~."""
    text = json.dumps(value)
    for folder, name in ((Path.cwd(), "."), (Path.home(), "~")):
        if folder != Path(os.sep):
            text = re.sub(rf"{re.escape(json.dumps(str(folder))[1:-1])}(?![\\w.-])", name, text)
    found: Json = json.loads(text)
    return found
