"""results.json: the questions that were asked on one machine, the runs that were made to answer them, the answers.

Of the suite, and of a command of one's own: then a run's `task` is `command`, and its `numerics` what was typed.

Such a file is carried to other machines as a passport: besides its shape and seal, every answer is checked against the
fingerprints that it rests on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro import sealed
from repro.sealed import INTEGER, NONE, NUMBER, SHA256, TEXT, UTC, Kind
from repro.verify.questions import UNANSWERED

COMMAND = "command"

RUN = {
    "task": str, "numerics": str, "label": str, "command": str, "status": {"done", "failed", "refused"},
    "error": TEXT, "fingerprint": (NONE, SHA256), "evaluation": TEXT, "seconds": (int, float),
    "steps": int, "losses": [(int, float)], "loss_steps": [int],
    "metrics": [{"step": int, "test_accuracy": NUMBER, "train_seconds": NUMBER, "fingerprint": SHA256}],
    "experiment": (NONE, {"facts": {"versions": dict, "scripts": {...: str}}}, {
        "config": {"params": dict, "data": {"dataset": str}, "environment": dict}, "framework": dict,
        "sha256": {"final_weights": (NONE, SHA256)},
    }),
}  # fmt: skip
DIFFERENCE = {
    "epoch": INTEGER, "step": INTEGER, "ranks?": [int], "channel?": TEXT, "last_equal_step": INTEGER, "tensor": TEXT,
    "elements": INTEGER, "size": INTEGER, "ulps": INTEGER, "relative": NUMBER, "operation": TEXT,
    "growth": [{"step": int, "relative": NUMBER}], "causes": [{"fact": str, "a": object, "b": object}],
}  # fmt: skip
ANSWER = {
    "question": str, "title": str, "framework": str, "numerics": str, "promise": {"same", "differs", None},
    "answer": {"same", "differs", "cannot tell", "not asked"}, "kept": (NONE, bool), "control": bool,
    "evidence": {"fingerprint", "evaluation", "record"}, "says?": str, "reason": TEXT, "runs": [str],
    "difference": (NONE, DIFFERENCE),
}  # fmt: skip
RESULTS = {
    "created": UTC, "seconds": (int, float), "runs": {...: RUN}, "answers": [ANSWER],
    "machine": {"cpu": dict, "gpu": [dict], "platform": str, "name": TEXT},
    "settings": {"steps": INTEGER, "questions": [str], "frameworks": [str], "numerics": [str], "overrides": [str]},
}  # fmt: skip


def write(path: Path, content: dict[str, Any]) -> None:
    """Adds schema and seal, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    sealed.write(KIND, path, content)


def read(path: Path) -> dict[str, Any]:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    return sealed.read(path, KIND)


def _contradictions(content: dict[str, Any]) -> Iterator[str]:
    """What does not follow from the fingerprints: a run's own, then the answers."""
    for name, run in content["runs"].items():
        own = run["task"] == COMMAND
        done = run["status"] == "done"
        if (run["fingerprint"] is not None) not in {done, done and not own}:
            yield f"run {name} is {run['status']}, with the fingerprint {run['fingerprint']}"
        if run["experiment"] and ("config" in run["experiment"]) == own:
            yield f"run {name} of {run['task']} has the experiment of another kind of run"
        recorded = [run["experiment"]["sha256"]["final_weights"]] if run["experiment"] and not own else []
        recorded += [row["fingerprint"] for row in run["metrics"][-1:]]
        if done and {*recorded} - {None, run["fingerprint"]}:
            yield f"run {name} has another fingerprint than its experiment.json or metrics.jsonl"
        if len(run["losses"]) != len(run["loss_steps"]):
            yield f"run {name} has {len(run['losses'])} losses at {len(run['loss_steps'])} steps"
    for answer in content["answers"]:
        what = f"{answer['question']}, {answer['framework']}, {answer['numerics']}"
        missing = [name for name in answer["runs"] if name not in content["runs"]]
        if missing:
            yield f"the answer to {what} rests on a run that is not there ({missing[0]})"
        elif answer["answer"] not in _follow(answer, content["runs"]):
            yield f"the answer to {what} is {answer['answer']!r}, which does not follow from its runs"
        elif answer["kept"] != _kept(answer):
            yield f"the answer to {what} is {answer['answer']!r}, promised {answer['promise']!r}, kept {answer['kept']}"


def _follow(answer: dict[str, Any], runs: dict[str, Any]) -> set[str]:
    """The answers that the runs allow: none always; one more where there are two or more and all are done.

    Records that differ may end with equal weights; those that are the same may not end with others.
    """
    chosen = [runs[name] for name in set(answer["runs"])]
    if answer["evidence"] == "record":
        unlike = len({run["fingerprint"] for run in chosen} - {None}) > 1
        return {*UNANSWERED, "differs"} | (set() if unlike else {"same"})
    evidence = [run[answer["evidence"]] for run in chosen]
    if len(evidence) < 2 or None in evidence:
        return {*UNANSWERED}
    return {*UNANSWERED, "same" if len(set(evidence)) == 1 else "differs"}


def _kept(answer: dict[str, Any]) -> bool | None:
    if answer["promise"] is None or answer["answer"] in UNANSWERED:
        return None
    return answer["promise"] == answer["answer"]


KIND = Kind("verify", "results.json", 1, "answers", RESULTS, _contradictions)
