"""What results.json of one machine or several say: the questions, the answers and what they rest on, as one structure.

report.json is that structure; the page, the Markdown and the terminal's table show it, and add nothing.
"""

from typing import Any

from repro.text import brief, printable, ranks, short
from repro.verify import machines, results
from repro.verify.questions import UNANSWERED

FRAMEWORKS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", results.COMMAND: "Your command"}
TOGETHER = "all"  # the framework of a question that is asked of all of them together
MANY = 1_000_000  # units in the last place: from there on, nobody counts
BASES = ("as configured", "as it stands")  # the label of the run that nothing was changed for
EVIDENCE = {"fingerprint": "fingerprint", "evaluation": "evaluation", "record": "fingerprint"}  # what is shown of a run

Json = dict[str, Any]


def build(contents: list[Json]) -> Json:
    """The report on results as results.read() returns them; a file given twice counts once, the newest comes first."""
    unique = {content["seal"]: printable(content) for content in contents}
    ordered = sorted(unique.values(), key=lambda content: content["created"], reverse=True)
    known = machines.distinct(ordered)
    across = _blocks((answer, answer["runs"]) for answer in machines.answers(known))
    sections = [_section(content, machine) for machine in known for content in machine.results]
    blocks: list[tuple[str | None, Json]] = [(None, block) for block in across]
    blocks += [(section["machine"], block) for section in sections for block in section["blocks"]]
    return {
        "schema": results.KIND.schema,
        "verdict": _verdict(blocks),
        "across": across,
        "sections": sections,
        "machines": [{"name": m.name, "summary": _summary(m), "facts": _facts(m)} for m in known],
    }


def _section(content: Json, machine: machines.Machine) -> Json:
    """What one results.json says."""
    runs = content["runs"]
    pairs = ((answer, [runs[name] for name in answer["runs"]]) for answer in content["answers"])
    numerics = dict.fromkeys(run["numerics"] for run in runs.values())
    bases = [{"numerics": each, "runs": _bases(list(runs.values()), each)} for each in numerics]
    return {
        "machine": machine.name,
        "summary": _summary(machine),
        "created": content["created"],
        "seconds": content["seconds"],
        "seal": content["seal"],
        "settings": content["settings"],
        "blocks": _blocks(pairs),
        "curves": [{"numerics": base["numerics"], **_curves(base["runs"])} for base in bases if base["runs"]],
        "speed": [_speed(base["numerics"], run) for base in bases for run in base["runs"].values()],
    }


# --- the table ------------------------------------------------------------------------------------------------------


def _blocks(answered) -> list[Json]:
    """Pairs of an answer and its runs -> for each numerics a table: a row for each question, its cells by framework."""
    blocks: dict[str, Json] = {}
    for answer, runs in answered:
        block = blocks.setdefault(answer["numerics"], {"numerics": answer["numerics"], "frameworks": [], "rows": []})
        framework = answer["framework"]
        if framework not in (*block["frameworks"], TOGETHER):
            block["frameworks"].append(framework)
        what = {"question": answer["question"], "title": answer["title"], "control": answer["control"]}
        rows = [row for row in block["rows"] if what.items() <= row.items() and framework not in row["cells"]]
        if not rows:
            rows = [what | {"cells": {}}]
            block["rows"] += rows
        rows[0]["cells"][framework] = _cell(answer, runs)
    return list(blocks.values())


def _cell(answer: Json, runs: list[Json]) -> Json:
    fingerprints = list(dict.fromkeys(run[EVIDENCE[answer["evidence"]]] for run in runs))
    asked = answer["answer"] not in UNANSWERED
    return {
        "framework": answer["framework"],
        "answer": answer["answer"],
        "promise": answer["promise"],
        "kept": answer["kept"],
        "says": _says(answer, fingerprints, len(runs)),
        "missing": answer["reason"] if asked else None,
        "difference": answer["difference"],
        "runs": [
            {name: run[name] for name in ("task", "label", "seconds", "command")}
            | {"evidence": run[EVIDENCE[answer["evidence"]]] or run["error"] or "not observed"}
            for run in runs
        ],
    }


def _says(answer: Json, evidence: list[str], runs: int) -> str:
    """The evidence in one line."""
    if answer["answer"] in UNANSWERED:
        return answer["reason"] or "no reason was given"
    if answer["answer"] == "same":
        same = short(evidence[0]) if answer["evidence"] == "fingerprint" else "loss and accuracy to the last bit"
        return answer.get("says", f"{runs} runs, {same}")
    counted = answer.get("says", f"{runs} runs, {len(evidence)} different {answer['evidence']}s")
    if answer["difference"] is None:
        return counted
    where = _where(answer["difference"])
    return f"{counted}; {where}" if "says" in answer else where


def _where(found: Json) -> str:
    """The first difference, its size and its most likely cause."""
    said = f"first seen at step {found['step']}" if found["step"] is not None else "no step is known"
    said += f" in {ranks(found['ranks'])}" if "ranks" in found else ""
    if found["tensor"] is not None:
        said += f" in {found['tensor']}"
    if found["ulps"] is not None and found["ulps"] < MANY:
        said += f", {found['ulps']:,} ulp"
    elif found["relative"] is not None:
        said += f", {found['relative']:.2g} relative"
    if found["causes"]:
        cause = found["causes"][0]
        said += f"; {cause['fact']}: {brief(cause['a'])} and {brief(cause['b'])}"
    return said


def promised(cell: Json) -> str:
    """Whether the promise was kept, in words and with a mark, so that no colour is needed; empty without an answer."""
    if cell["answer"] in UNANSWERED:
        return ""
    if cell["promise"] is None:
        return "nothing promised"
    return "✓ as promised" if cell["kept"] else f"✗ promised: {cell['promise']}"


def verdict(report: Json) -> str:
    """The report in one sentence or two."""
    found = report["verdict"]
    broken, all_ = len(found["broken"]), len(found["broken"]) + found["kept"]
    first = f"{broken} of {all_} promises broken." if broken else f"{all_} of {all_} promises kept."
    first = first if all_ else "No promise was put to the test."
    return f"{first} {found['without_promise']} answers without a promise, {found['not_asked']} questions not answered."


def _verdict(blocks: list[tuple[str | None, Json]]) -> Json:
    """How many promises were kept and which were broken; answers without a promise, and what was not asked."""
    cells = [
        (machine, block["numerics"], row, cell)
        for machine, block in blocks for row in block["rows"] for cell in row["cells"].values()
    ]  # fmt: skip
    return {
        "kept": sum(cell["kept"] is True for *_, cell in cells),
        "broken": [
            {"machine": machine, "title": row["title"], "numerics": numerics} | cell
            for machine, numerics, row, cell in cells if cell["kept"] is False
        ],
        "without_promise": sum(cell["kept"] is None and cell["answer"] not in UNANSWERED for *_, cell in cells),
        "not_asked": sum(cell["answer"] in UNANSWERED for *_, cell in cells),
    }  # fmt: skip


# --- curves, speed, machines ----------------------------------------------------------------------------------------


def _bases(runs: list[Json], numerics: str) -> dict[str, Json]:
    """By framework the run as configured, where it was done, in the frameworks' usual order."""
    found = {run["task"]: run for run in runs
             if run["numerics"] == numerics and run["label"] in BASES and run["status"] == "done"}  # fmt: skip
    return dict(sorted(found.items(), key=lambda item: (*FRAMEWORKS, item[0]).index(item[0])))


def _curves(runs: dict[str, Json]) -> Json:
    """By framework the training loss [step, loss] and the test accuracy [step, accuracy]."""
    return {
        "loss": {name: list(zip(run["loss_steps"], run["losses"], strict=True)) for name, run in runs.items()},
        "accuracy": {
            name: [(row["step"], row["test_accuracy"]) for row in run["metrics"] if row["test_accuracy"] is not None]
            for name, run in runs.items()
        },
    }


def _speed(numerics: str, run: Json) -> Json:
    """The time of the run as configured: per step in training, and of the whole process with all that it loads."""
    trained = [row["train_seconds"] for row in run["metrics"] if row["train_seconds"] is not None]
    framework = (run["experiment"] or {}).get("framework", {})
    return {
        "numerics": numerics,
        "framework": run["task"],
        "version": framework.get("version"),
        "device": framework.get("device_name") or framework.get("device"),
        "threads": framework.get("threads"),
        "steps": run["steps"],
        "seconds_per_step": sum(trained) / run["steps"] if trained and run["steps"] > 0 else None,
        "seconds": run["seconds"],
        "test_accuracy": run["metrics"][-1]["test_accuracy"] if run["metrics"] else None,
        "fingerprint": run["fingerprint"],
    }


def _summary(machine: machines.Machine) -> str:
    """What a machine is, in a line."""
    cpu = machine.facts["cpu"]
    parts = [machine.facts["name"], cpu.get("model") or cpu.get("architecture"), f"{cpu.get('usable')} cores"]
    return ", ".join(str(part) for part in [*parts, *(gpu.get("model") for gpu in machine.facts["gpu"])] if part)


def _facts(machine: machines.Machine) -> dict[str, str]:
    """What a machine is, in words."""
    cpu, gpus = machine.facts["cpu"], machine.facts["gpu"]
    said = {
        "name": machine.facts["name"],
        "CPU": cpu.get("model") or cpu.get("vendor"),
        "architecture": cpu.get("architecture"),
        "instruction set": cpu.get("instruction_set"),
        "cores": ", ".join(f"{cpu[key]} {key}" for key in ("cores", "logical", "usable") if cpu.get(key) is not None),
        "GPU": "; ".join(f"{gpu.get('model')}, driver {gpu.get('driver')}" for gpu in gpus) or "none",
        "system": machine.facts["platform"],
    }
    return {name: str(value) for name, value in said.items() if value}
