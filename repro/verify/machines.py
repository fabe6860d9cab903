"""The question that no machine can ask alone: does another one train to the same bits? Answered from their results."""

import string
from dataclasses import asdict, dataclass, field, fields
from itertools import combinations, product
from typing import Any

from repro.compare import facts
from repro.run import config
from repro.run.config import TRAIN_SAMPLES, Config, Data, Params
from repro.verify.results import COMMAND

QUESTION = "machine"


@dataclass
class Machine:
    """Results whose machine describes itself alike; two of a kind cannot be told apart, and count as one."""

    name: str
    facts: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)
    """Newest first."""

    def runs(self, task: str, numerics: str) -> dict[str, list[dict[str, Any]]]:
        """The runs in one framework and arithmetic, by id; those of a question that changes the arithmetic stay out."""
        found: dict[str, list[dict[str, Any]]] = {}
        for content in self.results:
            for name, run in content["runs"].items():
                configured = (run["experiment"] or {}).get("config", {"params": {"numerics": numerics}})
                recorded = configured["params"].get("numerics")
                if run["task"] == task and run["numerics"] == recorded == numerics:
                    found.setdefault(name, []).append(run)
        return found


def distinct(results: list[dict[str, Any]]) -> list[Machine]:
    """The machines that results are from, A, B and so on in the order of the first of each."""
    machines: list[Machine] = []
    for content in results:
        known = next((machine for machine in machines if machine.facts == content["machine"]), None)
        if known is None:
            count = len(machines)
            name = string.ascii_uppercase[count] if count < 26 else str(count + 1)
            machines.append(known := Machine(name, content["machine"]))
        known.results.append(content)
        known.results.sort(key=lambda content: content["created"], reverse=True)
    return machines


def answers(machines: list[Machine]) -> list[dict[str, Any]]:
    """For each pair of machines, framework and arithmetic an answer.

    As in results.json, but that `runs` are the runs themselves, and `says` counts them.
    """
    found = []
    for a, b in combinations(machines, 2):
        runs = [run for machine in (a, b) for content in machine.results for run in content["runs"].values()]
        kinds = dict.fromkeys((run["task"], run["numerics"]) for run in runs)
        found += [_answer(a, b, task, numerics) for task, numerics in kinds]
    return found


def _answer(a: Machine, b: Machine, task: str, numerics: str) -> dict[str, Any]:
    """Of one run or more that both machines made with one configuration; the others are not compared."""
    ours, theirs = a.runs(task, numerics), b.runs(task, numerics)
    compared, refused = [], []
    for name in [name for name in ours if name in theirs]:
        pairs = list(product(ours[name], theirs[name]))
        obstacles = [_obstacle(a, x, b, y) for x, y in pairs]
        if None in obstacles:
            compared.append(pairs[obstacles.index(None)])
        else:
            refused.append(f"{pairs[0][0]['label']}: {obstacles[0]}")
    compared.sort(key=lambda pair: pair[0]["fingerprint"] == pair[1]["fingerprint"])  # what differs comes first
    answer, promise, difference = "not asked", "same" if numerics == "portable" and task != COMMAND else None, None
    runs = [run | {"label": f"{m.name}: {run['label']}"} for p in compared for m, run in zip((a, b), p, strict=True)]
    equal = sum(x["fingerprint"] == y["fingerprint"] for x, y in compared)
    if compared:
        answer = "same" if equal == len(compared) else "differs"
        difference = _difference(*compared[0]) if answer == "differs" else None
    return {
        "question": QUESTION, "title": f"Another machine: {a.name} and {b.name}", "framework": task,
        "numerics": numerics, "promise": promise, "answer": answer,
        "kept": None if promise is None or not compared else answer == promise, "control": False,
        "evidence": "fingerprint", "difference": difference, "runs": runs,
        "says": f"{equal} of {len(compared)} runs are the same on both",
        "reason": "; ".join(refused) or (None if compared else "the two machines have no run in common"),
    }  # fmt: skip


def _obstacle(a: Machine, x: dict[str, Any], b: Machine, y: dict[str, Any]) -> str | None:
    """Why two runs cannot be compared, or None."""
    for machine, run in ((a, x), (b, y)):
        if run["status"] != "done":
            return f"{run['status']} on {machine.name} ({run['error']})"
        if run["experiment"] is None:
            return f"{machine.name} did not record its configuration"
        if run["fingerprint"] is None:
            return f"not observed on {machine.name}"
    if x["task"] == COMMAND:
        files = x["experiment"]["facts"]["scripts"], y["experiment"]["facts"]["scripts"]
        return None if files[0] == files[1] else "the files that the command names are not the same"
    ours, theirs = _deciding(x), _deciding(y)
    other = [key for key in sorted(ours.keys() | theirs.keys()) if ours.get(key) != theirs.get(key)]
    return ", ".join(f"{key}: {ours.get(key)} and {theirs.get(key)}" for key in other) or None


def _deciding(run: dict[str, Any]) -> dict[str, object]:
    """What decides the bits of a run on a given machine; a key that this version does not know may, so it counts."""
    recorded = run["experiment"]["config"]
    names = {key.name for key in fields(Params)}
    params = Params(**{name: value for name, value in recorded["params"].items() if name in names})
    configured = Config(params, Data(recorded["data"]["dataset"]), environment=recorded["environment"])
    unknown = {f"params.{name}": value for name, value in recorded["params"].items() if name not in names}
    samples = recorded["data"].get("train_samples", TRAIN_SAMPLES)
    unknown |= {"data.train_samples": samples} if samples != TRAIN_SAMPLES else {}
    return config.deciding(configured, run["experiment"]["framework"].get("device")) | unknown | {"steps": run["steps"]}


def _difference(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any] | None:
    """The first loss that differs, in the form of results.json. Weights are not carried over, so no tensor is named.

    Of a command no loss is known: then only the facts that differ can be told.
    """
    theirs = dict(zip(y["loss_steps"], y["losses"], strict=True))
    pairs = [
        (step, loss, theirs[step]) for step, loss in zip(x["loss_steps"], x["losses"], strict=True) if step in theirs
    ]
    first = next((index for index, (_, a, b) in enumerate(pairs) if a != b), None)
    unknown = dict.fromkeys(("epoch", "step", "last_equal_step", "tensor", "elements", "size", "ulps", "relative",
                             "operation"))  # fmt: skip
    experiments = (run["experiment"].get("facts", run["experiment"]) for run in (x, y))
    known = unknown | {"growth": [], "causes": [asdict(cause) for cause in facts.causes(*experiments)]}
    if first is None:
        return known if x["task"] == COMMAND else None
    growth = [
        {"step": step, "relative": abs(a - b) / abs(a) if a else abs(b)} for step, a, b in pairs[max(first - 1, 0) :]
    ]
    last_equal = pairs[first - 1][0] if first else None
    return known | {"step": pairs[first][0], "last_equal_step": last_equal, "growth": growth}
