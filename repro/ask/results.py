"""results.json: the questions that were asked on one machine, the runs that were made to answer them, the answers.

Such a file is carried to other machines as a passport: besides its shape and seal, every answer is checked against the
fingerprints that it rests on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro import sealed
from repro.sealed import INTEGER, NONE, NUMBER, SHA256, TEXT, UTC, Kind

RUN = {
    "task": str, "numerics": str, "label": str, "command": str, "status": {"done", "failed", "refused"},
    "error": TEXT, "fingerprint": (NONE, SHA256), "evaluation": TEXT, "seconds": (int, float),
    "steps": int, "losses": [(int, float)], "loss_steps": [int],
    "metrics": [{"step": int, "test_accuracy": NUMBER, "train_seconds": NUMBER, "fingerprint": SHA256}],
    "experiment": (NONE, {
        "config": {"params": dict, "data": {"dataset": str}, "environment": dict}, "framework": dict,
        "sha256": {"final_weights": (NONE, SHA256)},
    }),
}  # fmt: skip
DIFFERENCE = {
    "epoch": INTEGER, "step": int, "last_equal_step": INTEGER, "tensor": TEXT, "elements": INTEGER, "size": INTEGER,
    "ulps": INTEGER, "relative": NUMBER, "growth": [{"step": int, "relative": NUMBER}],
    "causes": [{"fact": str, "a": object, "b": object}], "operation": TEXT,
}  # fmt: skip
ANSWER = {
    "question": str, "title": str, "framework": str, "numerics": str, "promise": {"same", "differs", None},
    "answer": {"same", "differs", "not asked"}, "kept": (NONE, bool), "control": bool,
    "evidence": {"fingerprint", "evaluation"}, "reason": TEXT, "runs": [str], "difference": (NONE, DIFFERENCE),
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
        if (run["fingerprint"] is not None) != (run["status"] == "done"):
            yield f"run {name} is {run['status']}, with the fingerprint {run['fingerprint']}"
        recorded = [run["experiment"]["sha256"]["final_weights"]] if run["experiment"] else []
        recorded += [row["fingerprint"] for row in run["metrics"][-1:]]
        if run["status"] == "done" and {*recorded} - {None, run["fingerprint"]}:
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
    """The answers that the runs allow: `not asked` always; one more where there are two or more and all are done."""
    evidence = [runs[name][answer["evidence"]] for name in set(answer["runs"])]
    if len(evidence) < 2 or None in evidence:
        return {"not asked"}
    return {"not asked", "same" if len(set(evidence)) == 1 else "differs"}


def _kept(answer: dict[str, Any]) -> bool | None:
    if answer["promise"] is None or answer["answer"] == "not asked":
        return None
    return answer["promise"] == answer["answer"]


KIND = Kind("verify", "results.json", 1, "answers", RESULTS, _contradictions)
