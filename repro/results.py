"""results.json: the questions that were asked on one machine, the runs that were made to answer them, the answers.

Such a file is carried to other machines as a passport, so what is read here may come from anybody: it is checked
against the schema, against its seal, and every answer against the fingerprints that it rests on.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro.errors import ReproError, UsageError
from repro.files import write_atomically

SCHEMA = 1
LARGEST = 1e100  # no number of a run comes near; beyond, what is computed from it could overflow
NESTED = 20  # levels, twice what a run needs; what walks over a file calls itself once a level
REMEDY = "copy it anew from where it was made, or make it again with `./run.sh verify`"

# How a shape reads: a type; a pattern of a text; a set of the values allowed; [shape] of each element; {key: shape} of
# the keys that must be there, {...: shape} of every value; (shape, shape) for one or the other; object for anything.
NONE = type(None)
INTEGER, NUMBER, TEXT = (NONE, int), (NONE, int, float), (NONE, str)
SHA256 = re.compile("sha256:[0-9a-f]{64}")
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
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


def seal(content: dict[str, Any]) -> str:
    """SHA-256 of all but the seal itself, as JSON with sorted keys and no spaces.

    It shows that a file was cut short, damaged on its way or edited carelessly. It is no signature: whoever means to
    deceive computes it anew. Against that, only running the file's commands again helps.
    """
    rest = {key: value for key, value in content.items() if key != "seal"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def write(path: Path, content: dict[str, Any]) -> None:
    """Adds schema and seal, and writes the file, whole or not at all. ReproError for what read() would refuse."""
    content = json.loads(json.dumps({"schema": SCHEMA} | content))
    content["seal"] = seal(content)
    _check(path, content)
    write_atomically(path, json.dumps(content, indent=2).encode() + b"\n")


def read(path: Path) -> dict[str, Any]:
    """The content of a file, checked. UsageError if it is not there, ReproError if it cannot be believed."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"results: {path} is not there; name a results.json that `./run.sh verify` wrote") from None
    except OSError as error:
        raise ReproError(f"results: {path} cannot be read ({error.strerror}); name a results.json") from None
    except (ValueError, RecursionError):
        raise ReproError(f"results: {path} is not JSON; {REMEDY}") from None
    _check(path, content)
    return content


def _check(path: Path, content: Any) -> None:
    if not isinstance(content, dict) or "schema" not in content or "answers" not in content:
        raise ReproError(f"results: {path} holds no results of `verify`; name a results.json that it wrote")
    if _deeper(content, NESTED):
        raise ReproError(f"results: {path} is nested deeper than {NESTED} levels; {REMEDY}")
    if content["schema"] != SCHEMA:
        raise ReproError(
            f"results: {path} has schema {_short(content['schema'])}, this version reads {SCHEMA}; "
            "make it again with this version's `./run.sh verify`, or read it with the version that wrote it"
        )
    if content.get("seal") != seal(content):
        raise ReproError(f"results: {path} was changed after it was written: its seal does not match; {REMEDY}")
    flaw = next(_misshapen(content, RESULTS, ""), None) or next(_contradictions(content), None)
    if flaw:
        raise ReproError(f"results: {path} contradicts itself or the schema: {flaw}; {REMEDY}")


def _deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(one, levels - 1) for one in inner)


def _misshapen(value: Any, shape: Any, place: str) -> Iterator[str]:
    """The places where a value is not of a shape."""
    if isinstance(shape, tuple):
        flaws = [list(_misshapen(value, one, place)) for one in shape]
        yield from [] if [] in flaws else flaws[-1]
    elif isinstance(shape, list) and isinstance(value, list):
        for index, element in enumerate(value):
            yield from _misshapen(element, shape[0], f"{place}[{index}]")
    elif isinstance(shape, dict) and isinstance(value, dict):
        shapes = dict.fromkeys(value, shape[...]) if ... in shape else shape
        for key, inner in shapes.items():
            where = f"{place}.{key}".lstrip(".")
            yield from _misshapen(value[key], inner, where) if key in value else [f"{where} is missing"]
    elif not _fits(value, shape):
        yield f"{place} is {_short(value)}"


def _fits(value: Any, shape: Any) -> bool:
    if shape is object:
        return True
    if isinstance(shape, set):
        return isinstance(value, str | None) and value in shape
    if isinstance(shape, re.Pattern):
        return isinstance(value, str) and shape.fullmatch(value) is not None
    if type(value) is not shape:  # not isinstance: True is no number
        return False
    return shape not in (int, float) or abs(value) < LARGEST  # false for NaN, too


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


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
