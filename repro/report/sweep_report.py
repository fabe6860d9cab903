"""What came of a sweep: accuracy over seeds, time, fingerprints, and whether runs that must agree do."""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from repro.console import wide_console
from repro.errors import ReproError, UsageError
from repro.files import write_atomically, write_json
from repro.report.findings import FRAMEWORK_TITLES
from repro.report.markdown import table as markdown_table
from repro.run import config
from repro.run.config import Config, Data, Params
from repro.text import short

Json = dict[str, Any]

RUN, LOG = "run", "run.log"


def write(target: Path, folder: Path) -> Json:
    """Writes TARGET/sweep.{html,md,json} of a sweep's folder, and returns what is in the last."""
    found = build(read(folder))
    target.mkdir(parents=True, exist_ok=True)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    page = environment.get_template("sweep.html").render(found, tables=_tables(found), verdict=verdict(found))
    write_json(target / "sweep.json", found)
    write_atomically(target / "sweep.md", markdown(found).encode())
    write_atomically(target / "sweep.html", page.encode())
    return found


def report(target: Path, folder: Path) -> Json:
    """Makes the page of a sweep, prints its tables, and returns what it found."""
    found = write(target, folder)
    show(found, wide_console())
    print(f"report in {target / 'sweep.html'}", file=sys.stderr)
    return found


def read(folder: Path) -> list[Json]:
    """The runs of a sweep, in their order. UsageError where there are none, ReproError where one cannot be read."""
    places = sorted((path.parent for path in folder.glob(f"*/{LOG}")), key=lambda place: (len(place.name), place.name))
    if not places:
        raise UsageError(f"report: {folder} is no sweep's folder: it has no */{LOG}; name DIR/outputs/sweep/TIME")
    try:
        return [_run(place) for place in places]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReproError(f"report: {folder} holds a run that cannot be read ({error}); leave it out") from None


def _run(place: Path) -> Json:
    overrides = yaml.safe_load((place / ".hydra" / "overrides.yaml").read_text())
    said = (place / LOG).read_text(errors="replace").strip().splitlines()
    run: Json = {
        "number": place.name, "overrides": [key.removeprefix("+") for key in overrides if not key.startswith("+sif=")],
        "task": None, "numerics": None, "seed": None, "deciding": None, "steps": None, "fingerprint": "",
        "accuracy": None, "loss": None, "seconds": None, "error": said[-1] if said else "it said nothing",
    }  # fmt: skip
    path = place / RUN / "experiment.json"
    record: Json = json.loads(path.read_text()) if path.exists() else {}
    if not record or record["sha256"]["final_weights"] is None:
        return run
    params, data = Params(**record["config"]["params"]), record["config"]["data"]
    # deciding() may leave these out
    always = {"params.ranks": params.ranks, "data.train_samples": data["train_samples"]}
    configured = Config(params, Data(data["dataset"]), environment=record["config"]["environment"])
    lines = [json.loads(line) for line in (place / RUN / "metrics.jsonl").read_text().splitlines()]
    return run | {
        "task": record["task"], "numerics": params.numerics, "seed": params.seed,
        "deciding": config.deciding(configured, record["framework"]["device"]) | always,
        "steps": lines[-1]["step"], "fingerprint": record["sha256"]["final_weights"],
        "accuracy": lines[-1]["test_accuracy"], "loss": lines[-1]["test_loss"],
        "seconds": sum(line["train_seconds"] + line["test_seconds"] for line in lines), "error": None,
    }  # fmt: skip


def build(runs: list[Json]) -> Json:
    """What sweep.json holds: the runs, groups of those that differ in the seed alone, and of those that must agree."""
    done = [run for run in runs if run["error"] is None]
    groups = [
        {"task": task, "numerics": members[0]["numerics"], "steps": members[0]["steps"], "what": _what(key, done)}
        | _spread(members)
        for (task, key), members in _by(done, lambda run: (run["task"], _key(run, without=("params.seed",)))).items()
    ]
    must = [members for members in _by(done, _identity).values() if len(members) > 1]
    must = [members for members in must if members[0]["numerics"] != "fast"]
    return {
        "runs": runs,
        "groups": groups,
        "agreements": [
            {"runs": [run["number"] for run in members], "agree": len({run["fingerprint"] for run in members}) == 1}
            for members in must
        ],
        "failed": [run["number"] for run in runs if run["error"] is not None],
        "disagree": [
            run["number"] for members in must if len({run["fingerprint"] for run in members}) > 1 for run in members
        ],
    }


def _by(runs: list[Json], key: Callable[[Json], Any]) -> dict[Any, list[Json]]:
    found: dict[Any, list[Json]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def _key(run: Json, without: tuple[str, ...] = ()) -> str:
    return json.dumps([run["steps"], {k: v for k, v in run["deciding"].items() if k not in without}], sort_keys=True)


def _identity(run: Json) -> str:
    """Of what promises the same bits: in portable, neither the framework nor the number of ranks is part of it."""
    if run["numerics"] == "portable":
        return _key(run, without=("params.ranks",))
    return f"{run['task']} {_key(run)}"


def _what(key: str, done: list[Json]) -> str:
    """The keys, besides seed and numerics, in which groups differ: `params.learning_rate=0.1`."""
    _, own = json.loads(key)
    varied = {k for run in done for k, value in run["deciding"].items() if k in own and value != own[k]}
    return " ".join(f"{name}={own[name]}" for name in sorted(varied - {"params.numerics"}))


def _spread(members: list[Json]) -> Json:
    """Mean and spread of a group. A run that was made twice counts once: it is no second sample."""
    accuracies = list({run["seed"]: run["accuracy"] for run in members}.values())
    return {
        "runs": [run["number"] for run in members],
        "seeds": len(accuracies),
        "mean": statistics.fmean(accuracies),
        "deviation": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        "least": min(accuracies),
        "most": max(accuracies),
        "seconds": statistics.median(run["seconds"] for run in members),
    }


def verdict(found: Json) -> str:
    """One sentence or two, the worst first."""
    said = [f"{len(found['failed'])} of {len(found['runs'])} runs failed: {', '.join(found['failed'])}."] * bool(
        found["failed"]
    )
    for agreement in found["agreements"]:
        if not agreement["agree"]:
            said.append(f"Runs {', '.join(agreement['runs'])} must agree, and differ.")
    agreeing = [agreement for agreement in found["agreements"] if agreement["agree"]]
    if agreeing:
        sets = "; ".join(", ".join(agreement["runs"]) for agreement in agreeing)
        said.append(f"Runs that must agree do, to the bit: {sets}.")
    elif not found["agreements"]:
        said.append("No two runs promise the same bits, so none were compared.")
    return " ".join(said)


def _tables(found: Json) -> list[Json]:
    """The tables of all three forms of the report: title, head and rows of text."""
    groups = [
        [FRAMEWORK_TITLES[group["task"]], group["numerics"], group["what"], str(group["steps"]), str(group["seeds"]),
         _percent(group["mean"]), _percent(group["deviation"]),
         f"{_percent(group['least'])} to {_percent(group['most'])}", _seconds(group["seconds"])]
        for group in found["groups"]
    ]  # fmt: skip
    common = set.intersection(*(set(run["overrides"]) for run in found["runs"]))
    runs = [
        [run["number"], " ".join(key for key in run["overrides"] if key not in common), run["error"] or "done",
         _percent(run["accuracy"]), _seconds(run["seconds"]), short(run["fingerprint"])]
        for run in found["runs"]
    ]  # fmt: skip
    over = ["Framework", "Numerics", "With", "Steps", "Seeds", "Mean %", "Deviation", "Range", "Median s"]
    each = ["Run", "Of", "Came out", "Accuracy %", "Seconds", "Fingerprint"]
    return [
        {"title": "Accuracy over seeds, and time", "head": over, "rows": groups},
        {"title": f"Runs {' '.join(sorted(common))}".strip(), "head": each, "rows": runs},
    ]


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def markdown(found: Json) -> str:
    """The report for places that show Markdown."""
    lines = ["# A sweep", "", verdict(found)]
    for table in _tables(found):
        lines += ["", f"## {table['title']}", "", *markdown_table(table["head"], table["rows"])]
    return "\n".join([*lines, ""])


def show(found: Json, console: Console) -> None:
    """Prints the tables."""
    for given in _tables(found):
        table = Table(title=Text(given["title"]), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for name in given["head"]:
            table.add_column(name, overflow="fold")
        for row in given["rows"]:
            table.add_row(*map(Text, row))
        console.print(table)
    console.print(Text(verdict(found)))
