"""Ask `repro verify` about small trainings with a known fault.

    python docs/cases.py run [--results=FILE] [--again] [CASE ...]
    python docs/cases.py table [--results=FILE]
    python docs/cases.py reasons [--results=FILE] [CASE ...]

`run` asks about each case of evidence/cases/, one process after another, and adds the answers to FILE; a case that is
there already is not asked about again without --again. `table` writes the rows of these cases into docs/reference/cases.md;
a case that FILE does not have keeps its row, and one without a file loses it. `reasons` prints the answers in full.

It is not run in CI. Each framework is taken from .venv/; all of it takes an hour or two on two cores.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from repro.commands.verify import QUESTIONS

ROOT = Path(__file__).parents[1]
CASES = ROOT / "evidence/cases"
SHARED = ("case", "arrays")
"""Modules of that folder that are no cases."""
PAGE = Path(__file__).parent / "reference" / "cases.md"
TABLE = re.compile(r"(<!-- cases -->\n)(.*?)(<!-- end -->)", re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \|.*\|$", re.MULTILINE)
WRONG = " **(wrong)**"
OUTCOMES = ("true", "among guesses", "missing", "untrue")
SECONDS = 900
"""The longest time for one case."""


@dataclass(frozen=True)
class Case:
    """A training with a fault, and what is true of it, as the docstring of its file has it."""

    path: Path
    title: str
    answers: dict[str, str]
    """By question."""
    source: str = ""
    framework: str = "pytorch"
    ranks: int = 0
    vary: str = ""
    cause: str = ""
    """Pattern of the true cause, for the last of the answers."""
    warning: str = ""
    """Pattern of what must be said of a training that repeats exactly and is wrong."""

    @property
    def name(self) -> str:
        return self.path.stem

    def command(self) -> list[str]:
        """The call of verify."""
        python = str(ROOT / ".venv" / self.framework / "bin/python")
        ranks = ["-m", "torch.distributed.run", f"--nproc-per-node={self.ranks}"] if self.ranks else []
        words = [python, *ranks, str(self.path), "{run}"]
        file = "model.pt" if self.framework == "pytorch" else "model.npz"
        made = ["--output", f"{{run}}/{file}", "--to", "runs", "--json", "answers.json"]
        if asked := [question for question in self.answers if question in QUESTIONS]:
            made += ["--ask", ",".join(asked)]
        if {"resume", "kill", "resume_twice"} & self.answers.keys():
            made += ["--resume", " ".join([*words, "--resume"])]
        if self.vary:
            made += ["--vary", self.vary]
        return [sys.executable, "-m", "repro", "verify", *made, "--", *words]


def case(path: Path) -> Case:
    """Reads the docstring of a case: a title, an empty line, and lines of `key: value`."""
    title, _, *lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")
    said = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    answers = dict(each.split() for each in said.pop("answers").split(","))
    ranks = int(said.pop("ranks", "0"))
    return Case(path, title, answers, ranks=ranks, **said)


def cases(names: list[str]) -> list[Case]:
    paths = [CASES / f"{name}.py" for name in names] or sorted(CASES.glob("*.py"))
    return [case(path) for path in paths if path.stem not in SHARED]


@dataclass
class Result:
    """What verify answered about a case."""

    name: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    printed: str = ""
    seconds: float = 0.0
    commit: str = ""


def ask(each: Case, commit: str) -> Result:
    """Asks about a case, in a folder of its own."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "240", "NO_COLOR": "1"}
        done = subprocess.run(
            each.command(), cwd=folder, env=environment, stdout=-1, stderr=-2, text=True, timeout=SECONDS
        )
        file = Path(folder) / "answers.json"
        content = json.loads(file.read_text()) if file.exists() else {"answers": []}
    answers = {answer["question"]: answer for answer in content["answers"]}
    seconds = round(time.perf_counter() - begin, 1)
    return Result(each.name, answers, content.get("warnings", []), done.stdout, seconds, commit)


def results(path: Path) -> dict[str, Result]:
    """By case; a later line replaces an earlier one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {each["name"]: Result(**each) for each in map(json.loads, lines)}


# --- results ---------------------------------------------------------------------------------------------------------


def answered(each: Case, result: Result) -> dict[str, str]:
    """The word for each question that the case names; `not asked` where verify has no such question."""
    return {name: result.answers.get(name, {}).get("answer", "not asked") for name in each.answers}


def cause(each: Case, result: Result) -> str:
    """What was said of the cause by the last of the questions; of a training that is the same, the warnings."""
    if each.warning:
        return "; ".join(result.warnings)
    last = list(each.answers)[-1]
    answers = result.answers.get(last, {})
    return str(answers.get("why") or "") if each.answers[last] == "differs" == answers.get("answer") else ""


def outcome(each: Case, result: Result) -> str:
    """`true`, `among guesses`, `missing` or `untrue`; nothing where there is no cause to name."""
    pattern, said = each.cause or each.warning, cause(each, result)
    if not pattern:
        return ""
    named, guess = re.search(pattern, said, re.IGNORECASE), re.search(r"\(a guess|nothing shows", said)
    if named:
        return "among guesses" if guess else "true"
    return "missing" if guess or not said else "untrue"


def row(each: Case, result: Result) -> str:
    """The row of a case in the table."""
    words = answered(each, result)
    verdict = ", ".join(f"{name}: {word}" for name, word in words.items())
    wrong = "" if words == each.answers else WRONG
    said = cause(each, result).replace("|", "\\|")
    return f"| `{each.name}` | {each.title} | {each.source} | {verdict}{wrong} | {said} | {outcome(each, result)} |"


def table(results: dict[str, Result], page: str) -> str:
    """A row for each case that was asked about, now or when the page's table was written, and how many are right."""
    kept = {match[1]: match[0] for match in ROW.finditer(page)}
    rows = [row(each, results[each.name]) if each.name in results else kept.get(each.name) for each in cases([])]
    known = [one for one in rows if one]
    right = sum(WRONG not in one for one in known)
    named = Counter(one.split(" | ")[-1].removesuffix(" |") for one in known)
    head = [
        f"{len(known)} cases: {right} right verdicts; of the causes {', '.join(f'{named[name]} {name}' for name in OUTCOMES)}.",
        "",
        "| case | fault | public source | answers | cause, as `verify` says it | which is |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *known]) + "\n"


def reasons(results: dict[str, Result], names: list[str]) -> None:
    for each in cases(names):
        if each.name not in results:
            continue
        result = results[each.name]
        words = answered(each, result)
        print(
            f"{each.name}: {'right' if words == each.answers else 'WRONG'}; {outcome(each, result)}; {result.seconds} s"
        )
        for name, answer in (result.answers or {"": {"answer": result.printed[-300:]}}).items():
            print(f"    {name} {answer['answer']}: {answer.get('first')}: {answer.get('why')}")
        print(f"    {cause(each, result)}" if each.warning else "", end="\n" if each.warning else "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("run", "table", "reasons"))
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--results", type=Path, default=ROOT / "workspace/cases.jsonl")
    options = parser.parse_intermixed_args()
    if options.action == "table":
        page = PAGE.read_text(encoding="utf-8")
        fresh = table(results(options.results), page)
        PAGE.write_text(TABLE.sub(lambda match: match[1] + fresh + match[3], page), encoding="utf-8")
        return
    if options.action == "reasons":
        reasons(results(options.results), options.cases)
        return
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    for each in cases(options.cases):
        if options.again or each.name not in results(options.results):
            result = ask(each, commit)
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(result)) + "\n")
            print(f"{each.name}: {answered(each, result)}; {outcome(each, result)}; {result.seconds} s", flush=True)


if __name__ == "__main__":
    main()
